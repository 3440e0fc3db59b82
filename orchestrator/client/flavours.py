"""One description of an operation, two flavours of it.

A resource's method describes what is done: a request, or steps. On a blocking client the method gives the result; on an
asynchronous one it gives something to await, or to iterate over with `async for`. Type checkers see the right one.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from orchestrator.client.requests import Items, Request
from orchestrator.client.steps import Effect, Give, Retry, Steps, exchange, one_page, pages
from orchestrator.client.transports import Asynchronous, Blocking

P = ParamSpec("P")
T = TypeVar("T")


class _Driven(Generic[T]):
    """Steps on their way: iterating gives the next effect, which is to be answered before the one after it is asked for."""

    def __init__(self, steps: Steps[T]) -> None:
        self._steps = steps
        self._answer: Any = None
        self._error: Exception | None = None
        self.result: T

    def __iter__(self) -> Iterator[Effect]:
        try:
            while True:
                error, answer = self._error, self._answer
                self._error = self._answer = None
                try:
                    effect = self._steps.send(answer) if error is None else self._steps.throw(error)
                except StopIteration as end:
                    self.result = end.value
                    return
                yield effect
        finally:
            self._steps.close()

    def answer(self, value: Any) -> None:
        self._answer = value

    def fail(self, error: Exception) -> None:
        self._error = error


class Sync:
    """Performs steps on the calling thread."""

    def __init__(self, transport: Blocking, retry: Retry) -> None:
        self.transport = transport
        self.retry = retry

    def run(self, steps: Steps[T]) -> T:
        driven = _Driven(steps)
        for _ in self._values(driven):
            raise TypeError("these steps give values; iterate over them")
        return driven.result

    def iterate(self, steps: Steps[None]) -> Iterator[Any]:
        return self._values(_Driven(steps))

    def _values(self, driven: _Driven[Any]) -> Iterator[Any]:
        with self.transport.session() as session:
            for effect in driven:
                if isinstance(effect, Give):
                    yield effect.value
                    continue
                try:
                    driven.answer(session.perform(effect))
                except Exception as error:  # raised again where the steps asked for the effect
                    driven.fail(error)


class Async:
    """Performs steps on an event loop."""

    def __init__(self, transport: Asynchronous, retry: Retry) -> None:
        self.transport = transport
        self.retry = retry

    async def run(self, steps: Steps[T]) -> T:
        driven = _Driven(steps)
        async for _ in self._values(driven):
            raise TypeError("these steps give values; iterate over them")
        return driven.result

    def iterate(self, steps: Steps[None]) -> AsyncIterator[Any]:
        return self._values(_Driven(steps))

    async def _values(self, driven: _Driven[Any]) -> AsyncIterator[Any]:
        async with self.transport.session() as session:
            for effect in driven:
                if isinstance(effect, Give):
                    yield effect.value
                    continue
                try:
                    driven.answer(await session.perform(effect))
                except Exception as error:  # raised again where the steps asked for the effect
                    driven.fail(error)


F = TypeVar("F", bound=Sync | Async)


class Resource(Generic[F]):
    """Operations that belong together, bound to a client."""

    def __init__(self, flavour: F) -> None:
        self._flavour: F = flavour
        self._retry: Retry = flavour.retry


class procedure(Generic[P, T]):  # noqa: N801
    """A method that describes steps and gives their result."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        self.describe = describe
        functools.update_wrapper(cast("Any", self), describe)

    @overload
    def __get__(self, resource: None, owner: type) -> procedure[P, T]: ...
    @overload
    def __get__(self, resource: Resource[Sync], owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, resource: Resource[Async], owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: type) -> Any:
        if resource is None:
            return self

        @functools.wraps(self.describe)
        def perform(*args: P.args, **kwargs: P.kwargs) -> Any:
            return resource._flavour.run(self.describe(resource, *args, **kwargs))

        return perform


class operation(procedure[P, T]):  # noqa: N801
    """A method that describes one request and gives its answer."""

    def __init__(self, request: Callable[Concatenate[Any, P], Request[T]]) -> None:
        self.request = request

        def describe(resource: Resource[Any], /, *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
            return exchange(request(resource, *args, **kwargs), resource._retry)

        functools.update_wrapper(describe, request)
        super().__init__(describe)


@dataclass(frozen=True)
class Values(Generic[T]):
    """Steps that give values of one type."""

    steps: Steps[None]


class iteration(Generic[P, T]):  # noqa: N801
    """A method that describes steps and iterates over the values that they give."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Values[T]]) -> None:
        self.describe = describe
        functools.update_wrapper(cast("Any", self), describe)

    @overload
    def __get__(self, resource: None, owner: type) -> iteration[P, T]: ...
    @overload
    def __get__(self, resource: Resource[Sync], owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, resource: Resource[Async], owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: type) -> Any:
        if resource is None:
            return self

        @functools.wraps(self.describe)
        def iterate(*args: P.args, **kwargs: P.kwargs) -> Any:
            return resource._flavour.iterate(self.describe(resource, *args, **kwargs).steps)

        return iterate


class listing(iteration[P, T]):  # noqa: N801
    """A method that describes the request for a list, and iterates over its items through all its pages.

    `limit` among its arguments is the number of items at most.
    """

    def __init__(self, request: Callable[Concatenate[Any, P], Request[Items[T]]]) -> None:
        self.request = request

        def describe(resource: Resource[Any], /, *args: P.args, **kwargs: P.kwargs) -> Values[T]:
            asked = request(resource, *args, **kwargs)
            if "limit" not in asked.query:
                return Values(one_page(asked, resource._retry))
            return Values(pages(asked, resource._retry, limit=asked.query["limit"]))

        functools.update_wrapper(describe, request)
        super().__init__(describe)
