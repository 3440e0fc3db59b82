"""Tags: what is one, and how people type them."""

from __future__ import annotations

import pytest

from orchestrator.runs.labels.labels import MAX_TAGS, checked_tags, typed_tags


def test_tags_are_kept_once_in_their_order() -> None:
    assert checked_tags(["b", "a", "b"]) == ("b", "a")


@pytest.mark.parametrize("tag", ["", "two words", "a,b", "x" * 51, "tab\tbed"])
def test_what_is_no_tag_is_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="tag"):
        checked_tags([tag])


def test_a_run_has_a_limited_number_of_tags() -> None:
    assert len(checked_tags(str(n) for n in range(MAX_TAGS))) == MAX_TAGS
    with pytest.raises(ValueError, match="at most"):
        checked_tags(str(n) for n in range(MAX_TAGS + 1))


def test_typed_tags_are_parted_by_blanks_and_commas() -> None:
    assert typed_tags(" baseline,prompt-v2   nightly, ") == ["baseline", "prompt-v2", "nightly"]
