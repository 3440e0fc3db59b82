"""Cancel, retry and dismiss jobs of every kind: runs, and datasets that are being added."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.datasets.jobs import DatasetJobs
from orchestrator.db.idempotency import Idempotency
from orchestrator.errors import Conflict, Forbidden
from orchestrator.evals.jobs import EvalJobs
from orchestrator.runs.service import RunService
from orchestrator.scopes import Scope


class JobService:
    def __init__(
        self, runs: RunService, eval_jobs: EvalJobs, dataset_jobs: DatasetJobs, *, look: Callable[[], None]
    ) -> None:
        self._runs, self._eval_jobs, self._dataset_jobs, self._look = runs, eval_jobs, dataset_jobs, look

    async def cancel(self, job_id: str, scope: Scope) -> None:
        if self._dataset_jobs.find(job_id) is not None:
            _for_owners(scope)
            self._dataset_jobs.cancel(job_id)
        else:
            await self._runs.cancel(job_id)
            self._look()

    async def retry(self, job_id: str, scope: Scope, idempotency: Idempotency | None = None) -> str:
        """Returns the id of the new job."""
        if self._dataset_jobs.find(job_id) is not None:
            _for_owners(scope)
            return self._dataset_jobs.retry(job_id).id
        return await self._eval_jobs.retry(job_id, idempotency)

    async def dismiss(self, job_id: str) -> None:
        if self._dataset_jobs.find(job_id) is not None:
            raise Conflict(f"job {job_id} adds a dataset; it is not a dead letter and cannot be dismissed")
        await self._runs.dismiss(job_id)


def _for_owners(scope: Scope) -> None:
    """All workspaces share the datasets, so only owners may change them, here as in the dataset API."""
    if not scope.allows(Scope.OWNER):
        raise Forbidden("datasets belong to all workspaces; only an owner may cancel or retry adding one")
