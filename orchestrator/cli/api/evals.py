"""The part of the REST API that is about traces, evals and jobs."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from orchestrator.cli.api.client import Client, Json
from orchestrator.cli.errors import CliError
from orchestrator.cli.view.text import clean

MANY = 10_000


class EvalClient(Client):
    """What it follows are jobs."""

    def eval_sets(self) -> list[Json]:
        return self._pages("/api/eval-sets", limit=MANY, query={})

    def create_eval_set(self, body: Json) -> Json:
        return self._call("POST", "/api/eval-sets", json=body)

    def find_set(self, given: str) -> Json:
        """By id, any unique beginning of it, or name."""
        return _one(given, self.eval_sets(), "eval set", "benchyard evals list --sets")

    def evals(self, **query: str) -> list[Json]:
        return self._pages("/api/evals", limit=MANY, query=dict(query))

    def eval(self, eval_id: str) -> Json:
        return self._call("GET", f"/api/evals/{quote(eval_id, safe='')}")

    def find_eval(self, given: str) -> Json:
        """By id, any unique beginning of it, or name: then the newest version."""
        newest: dict[tuple[str, str], Json] = {}
        every = self.evals()
        for each in every:
            newest.setdefault((each["eval_set_id"], each["name"]), each)
        named = [each for each in newest.values() if each["name"] == given]
        return _one(given, named or every, "eval", "benchyard evals list")

    def generate(self, set_id: str, body: Json) -> Json:
        return self._call("POST", f"/api/eval-sets/{quote(set_id, safe='')}/generate", json=body)

    def execute(self, eval_id: str, body: Json) -> Json:
        return self._call("POST", f"/api/evals/{quote(eval_id, safe='')}/execute", json=body)

    def contradictions(self, eval_id: str, limit: int) -> list[Json]:
        return self._pages(f"/api/evals/{quote(eval_id, safe='')}/contradictions", limit=limit, query={})

    def traces(self, *, limit: int) -> list[Json]:
        return self._pages("/api/traces", limit=limit, query={})

    def import_traces(self, file: Path, query: Json) -> Json:
        return self._send("POST", "/api/traces", file, query)

    def job(self, job_id: str) -> Json:
        return self._call("GET", self._followed(job_id))

    def cancel_job(self, job_id: str) -> Json:
        return self._call("POST", f"{self._followed(job_id)}/cancel")

    def retry_job(self, job_id: str) -> Json:
        return self._call("POST", f"{self._followed(job_id)}/retry")

    def dismiss_job(self, job_id: str) -> Json:
        return self._call("POST", f"{self._followed(job_id)}/dismiss")

    def jobs(self, *, limit: int, query: Json) -> list[Json]:
        return self._pages("/api/jobs", limit=limit, query=query)

    def run(self, run_id: str) -> Json:
        return self.job(run_id)

    def _followed(self, run_id: str) -> str:
        return f"/api/jobs/{quote(run_id, safe='')}"


def _one(given: str, found: list[Json], what: str, lists: str) -> Json:
    exact = [each for each in found if given in (each["id"], each["name"])]
    near = exact or [each for each in found if len(given) >= 4 and str(each["id"]).startswith(given)]
    if not near:
        raise CliError(f"There is no {what} {clean(given)}; `{lists}` shows those there are.")
    if len(near) > 1:
        some = ", ".join(clean(each["id"]) for each in near[:3])
        raise CliError(f"Several {what}s are meant by {clean(given)}: {some}; give an id.")
    return near[0]
