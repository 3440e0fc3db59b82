"""Response bodies for the leaderboard."""

from __future__ import annotations

from datetime import date

from pydantic import Field

from orchestrator.http.schemas import Answer
from orchestrator.leaderboard.ranking import RankedModel
from orchestrator.leaderboard.samples import BoardSample
from orchestrator.leaderboard.views.details import PlaceDetails
from orchestrator.stats.summary import Metric


class PlaceOut(Answer):
    model: str
    run_id: str
    metric: Metric = Field(default=Metric.SHARE, description="`mean` if a result has a value between 0 and 1.")
    estimate: float
    low: float
    high: float
    problems: int = Field(description="Problems of the board's sample with a result; others ended with errors.")
    results: int = Field(default=0, description="Answers that count, over all samples of these problems.")
    best: int
    worst: int
    group: int
    tied_with: list[str]
    imported: bool = Field(
        default=False, description="Its answers came from a file; what was asked for them may be worded otherwise."
    )

    by_difficulty: dict[str, float] = Field(default_factory=dict, description="Mean value by difficulty, easy to hard.")
    pass_at_k: dict[int, float] = Field(default_factory=dict, description="For k above 1, if there are several samples.")
    before_cut_off: float | None = Field(
        default=None, description="Mean value on problems published up to the model's training cut-off."
    )
    after_cut_off: float | None = None
    cost_per_item_usd: float | None = None
    input_tokens_per_item: float | None = None
    output_tokens_per_item: float | None = None
    latency_s: float | None = Field(default=None, description="Mean time of the provider per call.")

    @classmethod
    def of(cls, ranked: RankedModel, details: PlaceDetails | None = None, *, imported: bool = False) -> PlaceOut:
        names = ("model", "run_id", "metric", "problems", "results", "best", "worst", "group")
        fields = {name: getattr(ranked, name) for name in names}
        score = {name: getattr(ranked.score, name) for name in ("estimate", "low", "high")}
        it = details or PlaceDetails()
        return cls(
            **fields,
            **score,
            tied_with=list(ranked.tied_with),
            imported=imported,
            by_difficulty=it.by_difficulty,
            pass_at_k=it.pass_at_k,
            before_cut_off=it.before,
            after_cut_off=it.after,
            cost_per_item_usd=it.usage.cost_usd,
            input_tokens_per_item=it.usage.input_tokens,
            output_tokens_per_item=it.usage.output_tokens,
            latency_s=it.usage.latency_s,
        )


class BoardSampleOut(Answer):
    """The problems that models are compared on; every ranked model has results for all of them."""

    id: str
    problems: int
    prompt_version: str
    models: int = Field(description="Models with a comparable run on all of its problems.")

    @classmethod
    def of(cls, sample: BoardSample) -> BoardSampleOut:
        return cls(
            id=sample.id,
            problems=len(sample.problems),
            prompt_version=sample.prompt_version,
            models=len(sample.runs),
        )


class UnrankedOut(Answer):
    """A model that is not ranked because it has no run on the board's sample."""

    model: str
    run_id: str
    problems: int = Field(description="Of the board's sample.")
    why: str


class LeaderboardOut(Answer):
    benchmark: str
    pack_digest: str
    after: date | None
    before: date | None
    level: float
    window_problems: int = Field(description="Problems of the pack within the window.")
    sample: BoardSampleOut | None = Field(description="The sample that every place is of.")
    samples: list[BoardSampleOut] = Field(description="Samples that a board could be of, the best first.")
    places: list[PlaceOut]
    unranked: list[UnrankedOut]
