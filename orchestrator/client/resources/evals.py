"""Traces of applications, labels on them, and evals that a model writes."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from orchestrator.client import bodies, models
from orchestrator.client.flavours import F, Resource, listing, operation
from orchestrator.client.requests import UPLOAD_S, Items, Request, at, given


class Traces(Resource[F]):
    @operation
    def upload(
        self,
        file: Path | bytes,
        *,
        format: bodies.Format = "auto",
        project: str | None = None,
        eval_set_id: str | None = None,
    ) -> Request[models.TracesImported]:
        query = {"format": format, "project": project, "eval_set_id": eval_set_id}
        return Request("POST", at("traces"), models.TracesImported, query, file=file, timeout_s=UPLOAD_S)

    @listing
    def list(
        self,
        *,
        project: str | None = None,
        eval_set_id: str | None = None,
        label: bodies.LabelFilter | None = None,
        text: str | None = None,
        limit: int | None = None,
    ) -> Request[Items[models.TraceOut]]:
        query = {"project": project, "eval_set_id": eval_set_id, "label": label, "text": text, "limit": limit}
        return Request("GET", at("traces"), models.TraceOutPage, query)

    @operation
    def get(self, trace_id: str, *, eval_set_id: str | None = None) -> Request[models.TraceOut]:
        return Request("GET", at("traces", trace_id), models.TraceOut, {"eval_set_id": eval_set_id})

    @operation
    def delete(self, trace_id: str) -> Request[None]:
        return Request("DELETE", at("traces", trace_id))


class EvalSets(Resource[F]):
    @operation
    def create(self, **fields: Unpack[bodies.EvalSetCreate]) -> Request[models.EvalSetOut]:
        return Request("POST", at("eval-sets"), models.EvalSetOut, json=given(fields))

    @listing
    def list(self, *, limit: int | None = None) -> Request[Items[models.EvalSetOut]]:
        return Request("GET", at("eval-sets"), models.EvalSetOutPage, {"limit": limit})

    @operation
    def get(self, set_id: str) -> Request[models.EvalSetOut]:
        return Request("GET", at("eval-sets", set_id), models.EvalSetOut)

    @operation
    def change(self, set_id: str, **fields: Unpack[bodies.EvalSetChange]) -> Request[models.EvalSetOut]:
        return Request("PATCH", at("eval-sets", set_id), models.EvalSetOut, json=given(fields))

    @operation
    def delete(self, set_id: str) -> Request[None]:
        return Request("DELETE", at("eval-sets", set_id))

    @operation
    def label(self, set_id: str, **fields: Unpack[bodies.FeedbackCreate]) -> Request[models.FeedbackStored]:
        """Stores people's judgements of traces."""
        return Request("POST", at("eval-sets", set_id, "feedback"), models.FeedbackStored, json=given(fields))

    @operation
    def unlabel(self, set_id: str, trace_id: str) -> Request[None]:
        return Request("DELETE", at("eval-sets", set_id, "feedback", trace_id))

    @operation
    def generate(self, set_id: str, **fields: Unpack[bodies.GenerateCreate]) -> Request[models.JobCreated]:
        """Queues a job in which a model writes evals; `jobs.wait` waits for it."""
        path = at("eval-sets", set_id, "generate")
        return Request("POST", path, models.JobCreated, json=given(fields), keyed=True)


class Evals(Resource[F]):
    @listing
    def list(
        self,
        *,
        eval_set_id: str | None = None,
        name: str | None = None,
        model_id: int | None = None,
        limit: int | None = None,
    ) -> Request[Items[models.EvalOut]]:
        query = {"eval_set_id": eval_set_id, "name": name, "model_id": model_id, "limit": limit}
        return Request("GET", at("evals"), models.EvalOutPage, query)

    @operation
    def get(self, eval_id: str) -> Request[models.EvalDetail]:
        return Request("GET", at("evals", eval_id), models.EvalDetail)

    @operation
    def delete(self, eval_id: str) -> Request[None]:
        return Request("DELETE", at("evals", eval_id))

    @operation
    def execute(self, eval_id: str, **fields: Unpack[bodies.ExecuteCreate]) -> Request[models.ExecuteCreated]:
        path = at("evals", eval_id, "execute")
        return Request("POST", path, models.ExecuteCreated, json=given(fields), keyed=True)

    @listing
    def results(
        self, eval_id: str, *, passed: bool | None = None, failed: bool | None = None, limit: int | None = None
    ) -> Request[Items[models.VerdictOut]]:
        query = {"passed": passed, "failed": failed, "limit": limit}
        return Request("GET", at("evals", eval_id, "results"), models.VerdictOutPage, query)

    @listing
    def contradictions(
        self, eval_id: str, *, disputed: bool | None = None, limit: int | None = None
    ) -> Request[Items[models.ContradictionOut]]:
        query = {"disputed": disputed, "limit": limit}
        return Request("GET", at("evals", eval_id, "contradictions"), models.ContradictionOutPage, query)

    @operation
    def decide(self, eval_id: str, **fields: Unpack[bodies.DecisionCreate]) -> Request[models.DecisionStored]:
        """Says which side of a contradiction is wrong."""
        return Request("POST", at("evals", eval_id, "contradictions"), models.DecisionStored, json=given(fields))
