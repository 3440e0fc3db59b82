"""Request and response bodies for datasets."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Self

from pydantic import Field

from orchestrator.datasets.catalogue import BenchmarkInfo
from orchestrator.http.schemas import Answer, Body, Text


class DatasetCreate(Body):
    """A dataset to add: that of a known benchmark, or one at a URL."""

    name: Annotated[Text, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
    source: Annotated[Text, Field(pattern=r"^https?://", max_length=2000)] | None = None
    release: Annotated[Text, Field(max_length=40)] | None = None
    format: Annotated[Text, Field(max_length=64)] | None = None
    sha256: Annotated[Text, Field(pattern=r"^[0-9a-fA-F]{64}$")] | None = None


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

    @classmethod
    def of(cls, info: BenchmarkInfo) -> Self:
        first, last = info.window or (None, None)
        left_out = info.left_out
        own = {"first_date": first, "last_date": last, "left_out": len(left_out), "left_out_lines": left_out[:1000]}
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


class DatasetsOut(Answer):
    items: list[DatasetOut]
    jobs: list[DatasetJobOut]
