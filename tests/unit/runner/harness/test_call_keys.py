"""The keys of a harness's calls: the same question, the n-th time."""

from __future__ import annotations

import random

from orchestrator.gateway.calls import sample_index
from orchestrator.runs.queueing.plan import planned_calls
from runner.contract.run_spec import RunKind
from runner.harness.call_keys import CallNumbers, key_of, question_digest


def test_delivery_does_not_change_the_question() -> None:
    body = {"model": "m", "messages": [], "temperature": 1}
    plain = question_digest("/v1/chat/completions", body, {})
    assert plain == question_digest("/v1/chat/completions", {**body, "stream": True, "stream_options": {}}, {})
    assert plain != question_digest("/v1/chat/completions", {**body, "temperature": 0}, {})
    assert plain != question_digest("/v1/responses", body, {})


def test_the_same_questions_get_the_same_keys_in_any_order() -> None:
    questions = ["a", "b", "a", "a", "c", "b"]

    def keys(order: list[str]) -> list[str]:
        numbers = CallNumbers()
        return [key_of(question, numbers.take(question)) for question in order]

    first = keys(questions)
    assert len(set(first)) == len(questions)
    random.Random(1).shuffle(questions)
    assert sorted(keys(questions)) == sorted(first)


def test_a_request_that_is_sent_again_gets_the_number_that_was_not_delivered() -> None:
    numbers = CallNumbers()
    assert [numbers.take("q"), numbers.take("q")] == [0, 1]
    numbers.delivered("q", 1)
    numbers.released("q", 0)
    assert numbers.take("q") == 0, "the client of the first one left; whoever asks next joins that call"
    numbers.delivered("q", 0)
    assert numbers.take("q") == 2


def test_a_client_that_says_it_repeats_gets_the_answer_that_was_sent_to_it() -> None:
    numbers = CallNumbers()
    numbers.delivered("q", numbers.take("q"))
    assert numbers.take("q", repeated=True) == 0
    assert numbers.take("q") == 1
    assert numbers.take("new", repeated=True) == 0


def test_the_gateway_accepts_these_keys_and_no_others() -> None:
    allowed = planned_calls(None, None, "run", RunKind.HARNESS).asks  # type: ignore[arg-type]
    digest = question_digest("/v1/messages", {}, {})
    assert allowed(key_of(digest, 0))
    assert allowed(key_of(digest, 123_456))
    assert sample_index(key_of(digest, 7)) == 7, "an answer of another run is reused for the same repetition only"
    for key in (f"harness/{digest}/01/0", f"harness/{digest}/0/1", f"harness/{digest[1:]}/0/0", "sample/p1/0/0", ""):
        assert not allowed(key)
