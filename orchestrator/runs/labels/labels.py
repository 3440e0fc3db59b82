"""What people call a run: its name, tags and a note. They decide nothing and can be changed at any time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MAX_TAGS = 20
MAX_TAG = 50
MAX_NAME = 200
MAX_NOTE = 4000


@dataclass(frozen=True)
class Labels:
    name: str | None = None
    tags: tuple[str, ...] = ()
    note: str | None = None


NO_LABELS = Labels()


def tag_problem(tag: str) -> str | None:
    """What is wrong with a tag, if anything. Tags are typed in one field, so blanks and commas part them."""
    if not tag or any(char.isspace() or char == "," for char in tag):
        return f"{tag!r} is not a tag: a tag is one word without blanks and commas, such as baseline or prompt-v2"
    if len(tag) > MAX_TAG:
        return f"{tag[:20]!r}… is too long: a tag has at most {MAX_TAG} characters"
    return None


def checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Each once, in the order given. Raises `ValueError`."""
    unique = tuple(dict.fromkeys(tags))
    for tag in unique:
        if (problem := tag_problem(tag)) is not None:
            raise ValueError(problem)
    if len(unique) > MAX_TAGS:
        raise ValueError(f"{len(unique)} tags: a run has at most {MAX_TAGS}")
    return unique


def typed_tags(text: str) -> list[str]:
    """Tags as people type them: parted by blanks or commas."""
    return text.replace(",", " ").split()
