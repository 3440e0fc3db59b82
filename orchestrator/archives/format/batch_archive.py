"""The archive of a batch: `<instance-type>-<run-id>/...` for each ended member, streamed one member at a time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.archives.format.contents import Contents
from orchestrator.archives.format.layout import BATCH, BATCH_FORMAT, safe_name
from orchestrator.archives.format.tar_stream import gzipped, tar_of, whole


@dataclass(frozen=True)
class BatchMember:
    run_id: str
    instance_type: str
    status: str
    ended: bool

    @property
    def folder(self) -> str:
        return f"{safe_name(self.instance_type)}-{safe_name(self.run_id)}"


def batch_tar_gz(
    info: dict[str, Any], members: Sequence[BatchMember], contents: Callable[[str], Awaitable[Contents]]
) -> AsyncIterator[bytes]:
    """Writes `batch.json` first; it names the members that have not ended, which are left out."""
    return gzipped(_tar(info, members, contents))


async def _tar(
    info: dict[str, Any], members: Sequence[BatchMember], contents: Callable[[str], Awaitable[Contents]]
) -> AsyncIterator[bytes]:
    rows = [
        {"run_id": member.run_id, "status": member.status, "folder": member.folder if member.ended else None}
        for member in members
    ]
    document = json.dumps({"format": BATCH_FORMAT, **info, "members": rows}, sort_keys=True).encode() + b"\n"
    async for piece in tar_of([whole(BATCH, document)]):
        yield piece
    for member in members:
        if member.ended:
            archive = await contents(member.run_id)
            async for piece in tar_of(archive.members, prefix=f"{member.folder}/"):
                yield piece
