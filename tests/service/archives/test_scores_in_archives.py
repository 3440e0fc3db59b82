"""Values between 0 and 1 in archives: part of the digest where there are any, and nothing else changes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from orchestrator.archives.format.digest import ArchivedVerdict, grading_digest
from orchestrator.archives.format.replay import Verdicts

PLAIN = ArchivedVerdict("b", "p1", 0, "a" * 64, "wrong_answer", "", "d", "python")
MANIFEST = {"benchmarks": [{"name": "b", "pack_digest": "d", "adapter": "python"}]}
ITEM = {"benchmark": "b", "problem_id": "p1", "sample_index": 0, "answer_digest": "a" * 64, "outcome": "wrong_answer"}


def test_a_verdict_without_a_value_has_the_digest_it_always_had() -> None:
    fields = ["b", "p1", 0, "a" * 64, "wrong_answer", "", "d", "python"]
    assert grading_digest([PLAIN]) == hashlib.sha256(json.dumps(fields).encode() + b"\n").hexdigest()
    old = Verdicts()
    assert old.add(ITEM)
    assert old.with_packs(MANIFEST).digest == grading_digest([PLAIN])


def test_a_value_is_part_of_the_digest_and_of_a_replay() -> None:
    scored = Verdicts()
    assert scored.add({**ITEM, "score": 0.25})
    scored = scored.with_packs(MANIFEST)
    assert scored.digest == grading_digest([replace(PLAIN, score="0.25")]) != grading_digest([PLAIN])
    digest, moved, left = scored.now([{**ITEM, "score": 0.25}])
    assert (digest, moved, left) == (scored.digest, [], 0)
    digest, moved, _ = scored.now([{**ITEM, "score": 0.5}])
    assert digest != scored.digest
    assert [(change.score_before, change.score_after) for change in moved] == [("0.25", "0.5")]
