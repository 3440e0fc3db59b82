"""Name, tags and note of a run in requests: given when it is made, or changed later."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from orchestrator.http.schemas import Body, Text
from orchestrator.runs.labels.labels import MAX_NAME, MAX_NOTE, MAX_TAG, MAX_TAGS, Labels, checked_tags


def _checked(tags: list[str]) -> list[str]:
    return list(checked_tags(tags))


Tags = Annotated[
    list[Annotated[Text, Field(min_length=1, max_length=MAX_TAG)]], Field(max_length=MAX_TAGS), AfterValidator(_checked)
]
Name = Annotated[Text, Field(max_length=MAX_NAME)]
Note = Annotated[Text, Field(max_length=MAX_NOTE)]


class Labelled(Body):
    """Fields of every body that creates a run."""

    name: Annotated[Name | None, Field(description="What people call the run.")] = None
    tags: Tags = Field(default_factory=list, description="Words to find it by, without blanks and commas.")
    note: Annotated[Note | None, Field(description="Why it was made, what to know about it.")] = None

    @property
    def labels(self) -> Labels:
        return Labels(self.name or None, tuple(self.tags), self.note or None)


class LabelsChange(Body):
    """New values; a field that is left out stays, null or an empty value takes it away."""

    name: Name | None = None
    tags: Tags | None = None
    note: Note | None = None
