"""Joins the batches of several runners into one transaction: whatever arrives while one is being committed shares the next.

Each batch is answered after the commit that stored it. A transaction has at most one batch per run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.errors import ServiceError
from orchestrator.runs.intake.plain_batches import Answer, PlainBatches, Post
from runner.contract.events import EventAck

MOST_POSTS = 64
MOST_EVENTS = 1000

_Waiting = tuple[Post, asyncio.Future[EventAck | None]]


class PostGroups:
    def __init__(self, db: Database, batches: PlainBatches) -> None:
        self._db = db
        self._batches = batches
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None

    async def store(self, post: Post) -> EventAck | None:
        """The acknowledgement after the commit; None if the batch must go the long way. Raises what refuses the batch."""
        answer: asyncio.Future[EventAck | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((post, answer))
        if self._task is None:
            self._task = asyncio.create_task(self._drain())
        return await answer

    async def _drain(self) -> None:
        try:
            while self._waiting:
                await self._store(self._next())
        except asyncio.CancelledError as error:
            _fail(self._waiting, error)
            raise
        finally:
            self._task = None

    def _next(self) -> list[_Waiting]:
        """The next group, oldest first: one batch per run, up to a size that does not hold up other writers for long."""
        group: list[_Waiting] = []
        later: list[_Waiting] = []
        runs: set[str] = set()
        events = 0
        for entry in self._waiting:
            post = entry[0]
            events += len(post.batch.events)
            if post.run_id in runs or len(group) >= MOST_POSTS or (group and events > MOST_EVENTS):
                later.append(entry)
            else:
                group.append(entry)
            runs.add(post.run_id)
        self._waiting = later
        return group

    async def _store(self, group: list[_Waiting]) -> None:
        posts = [post for post, _ in group]
        try:
            answers = await self._write(posts)
        except DatabaseUnavailable as error:
            _fail(group, error)
        except Exception as error:  # one batch that cannot be stored must not refuse the others
            if len(group) == 1:
                _fail(group, error)
                return
            for entry in group:
                await self._store([entry])
        except BaseException as error:
            _fail(group, error)
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            for (_, future), answer in zip(group, answers, strict=True):
                if future.done():
                    continue  # the caller was cancelled
                if isinstance(answer, ServiceError):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

    async def _write(self, posts: Sequence[Post]) -> list[Answer]:
        return await self._db.write_plain(lambda connection: self._batches.store(connection, posts))


def _fail(group: list[_Waiting], error: BaseException) -> None:
    for _, future in group:
        if future.done():
            continue
        if isinstance(error, asyncio.CancelledError):
            future.cancel()
        else:
            future.set_exception(error)
