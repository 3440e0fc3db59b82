"""An answer as bytes for storage: compressed JSON, with all that a replay needs."""

from __future__ import annotations

import json

from orchestrator.gateway.calls import Settlement
from orchestrator.gateway.protocols.usage import Finish, TokenUsage
from orchestrator.system.zstd import compress_quickly, decompress
from runner.contract import Protocol

FORMAT = 1


def pack(settlement: Settlement) -> bytes:
    data = {"format": FORMAT, **vars(settlement), "usage": vars(settlement.usage)}
    return compress_quickly(json.dumps(data).encode())


def unpack(packed: bytes) -> Settlement:
    data = json.loads(decompress(packed))
    if data.pop("format") != FORMAT:
        raise ValueError("the stored answer has a format that this version does not know")
    usage, finish, protocol = TokenUsage(**data.pop("usage")), Finish(data.pop("finish")), Protocol(data.pop("protocol"))
    return Settlement(usage=usage, finish=finish, protocol=protocol, **data)
