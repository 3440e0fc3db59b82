"""Request and response bodies for datasets."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date, datetime
from typing import Annotated, Any, Self

from pydantic import Field

from orchestrator.datasets.catalogue import BenchmarkInfo
from orchestrator.datasets.preview import Preview
from orchestrator.http.schemas import Answer, Body, Text


class DatasetCreate(Body):
    """A dataset to add: that of a known benchmark, or one at a URL."""

    name: Annotated[Text, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
    source: Annotated[Text, Field(pattern=r"^(https?|hf)://", max_length=2000)] | None = Field(
        default=None, description="An http(s) address, or hf://owner/name for a data set on the hub."
    )
    release: Annotated[Text, Field(max_length=40)] | None = None
    format: Annotated[Text, Field(max_length=64)] | None = None
    sha256: Annotated[Text, Field(pattern=r"^[0-9a-fA-F]{64}$")] | None = None
    revision: Annotated[Text, Field(max_length=200)] | None = Field(
        default=None, description="A branch, tag or commit of the hub data set; it is resolved to its commit."
    )
    config: Annotated[Text, Field(max_length=200)] | None = None
    split: Annotated[Text, Field(max_length=200)] | None = None


class DatasetFileOut(Answer):
    name: str
    sha256: str


class DatasetStatisticsOut(Answer):
    """Numbers of problems; those without the property are not counted."""

    difficulties: dict[str, int]
    categories: dict[str, int]
    platforms: dict[str, int]
    dates: dict[str, int] = Field(description="By month, or by year if there are many months.")
    flagged: int = Field(description="Problems known to be faulty.")


class DatasetRecordOut(Answer):
    """A problem; long texts and lists of its record are cut."""

    id: str
    difficulty: str
    date: str
    platform: str
    category: str
    title: str
    record: dict[str, Any]

    @classmethod
    def of(cls, preview: Preview) -> Self:
        return cls(**asdict(preview.entry), record=preview.record)


class DatasetOut(Answer):
    name: str
    adapter: str
    pack_digest: str
    problems: int
    difficulties: dict[str, int]
    first_date: date | None
    last_date: date | None
    description: str
    licence: str
    source: str
    left_out: int
    left_out_lines: list[str]
    revision: str = Field(description="The commit that its files are from; empty if they have none.")
    files: list[DatasetFileOut] = Field(description="The source files. Packs made by earlier versions do not name them.")

    @classmethod
    def of(cls, info: BenchmarkInfo) -> Self:
        first, last = info.window or (None, None)
        left_out = info.left_out
        own = {
            "first_date": first,
            "last_date": last,
            "left_out": len(left_out),
            "left_out_lines": left_out[:1000],
            "files": [DatasetFileOut(name=name, sha256=sha256) for name, sha256 in info.files],
        }
        return cls(**{name: getattr(info, name) for name in cls.model_fields if name not in own}, **own)


class DatasetJobOut(Answer):
    """Progress of adding a dataset: `running`, `done`, `failed` or `cancelled`."""

    job_id: str | None = Field(default=None, description="Among the jobs; none for one that was there before the start.")
    name: str
    state: str
    started_at: datetime | None = None
    ended_at: datetime | None = None
    step: str = ""
    file: str = ""
    done_bytes: int = 0
    total_bytes: int = Field(default=0, description="0 while it is not known.")
    error: str | None = None
    pack_digest: str | None = None
    problems: int | None = None
    left_out: int = 0
    left_out_lines: list[str] = Field(default_factory=list)
    dataset: DatasetOut | None = None
    statistics: DatasetStatisticsOut | None = None
    records: list[DatasetRecordOut] = Field(default_factory=list, description="As many as `records` asks for.")


class DatasetsOut(Answer):
    items: list[DatasetOut]
    jobs: list[DatasetJobOut]
