"""A search for the answer that takes long runs beside the event loop and is given up after a while."""

from __future__ import annotations

import asyncio
import threading

from runner.rules.extraction import SHORT_CHARS, Extraction, Rule, search

LONG = "x" * (SHORT_CHARS + 1)


def test_a_long_text_is_searched_while_other_things_go_on() -> None:
    began, may_end = threading.Event(), threading.Event()

    def slow(text: str) -> Extraction:
        began.set()
        assert may_end.wait(60)
        return Extraction(text[:1], Rule.BARE_CODE)

    async def main() -> Extraction:
        searching = asyncio.create_task(search(slow, LONG))
        while not began.is_set():
            await asyncio.sleep(0.001)
        may_end.set()  # the event loop is free to do this
        return await searching

    assert asyncio.run(main()).code == "x"


def test_a_search_without_end_finds_nothing() -> None:
    may_end = threading.Event()

    def endless(_: str) -> Extraction:
        may_end.wait(60)
        return Extraction("late", Rule.BARE_CODE)

    async def main() -> Extraction:
        found = await search(endless, LONG, within_s=0.05)
        may_end.set()
        return found

    assert asyncio.run(main()) == Extraction(None, Rule.NONE)


def test_a_short_text_needs_no_thread() -> None:
    here = threading.get_ident()

    def where(_: str) -> Extraction:
        return Extraction(str(threading.get_ident()), Rule.BARE_CODE)

    assert asyncio.run(search(where, "short")).code == str(here)
