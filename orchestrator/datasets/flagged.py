"""LiveCodeBench problems that its authors list as faulty, so that a score can be taken without them.

From the errata of LiveCodeBench at commit 28fef95. LeetCode problems are listed by title, the others by id.
"""

from __future__ import annotations

from orchestrator.datasets.packs.pack import Entry

_SEVERAL_ANSWERS = "several answers are right, the tests know one"
_INTERACTIVE = "interactive: cannot be judged by fixed tests"
_WRONG_TESTS = "some of its tests are wrong"

FLAGGED: dict[str, str] = {
    "abc311_c": _SEVERAL_ANSWERS,
    "abc326_d": _SEVERAL_ANSWERS,
    "abc327_b": _SEVERAL_ANSWERS,
    "abc333_e": _SEVERAL_ANSWERS,
    "abc343_a": _SEVERAL_ANSWERS,
    "abc343_e": _SEVERAL_ANSWERS,
    "abc362_c": _SEVERAL_ANSWERS,
    "arc185_c": _SEVERAL_ANSWERS,
    "find-words-containing-character": _SEVERAL_ANSWERS,
    "find-the-peaks": _SEVERAL_ANSWERS,
    "generate-binary-strings-without-adjacent-zeros": _SEVERAL_ANSWERS,
    "abc337_e": _INTERACTIVE,
    "abc355_e": _INTERACTIVE,
    "abc350_c": _WRONG_TESTS,
    "arc189_a": _WRONG_TESTS,
    "apply-operations-to-make-string-empty": _WRONG_TESTS,
    "most-frequent-ids": _WRONG_TESTS,
}


def flaw(entry: Entry) -> str | None:
    """Why a problem is listed as faulty, or None."""
    if entry.platform == "leetcode":
        return FLAGGED.get(entry.title)
    return FLAGGED.get(entry.id)
