"""What is streamed out is what comes together again, for any answer; finish reasons and usage in one shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.gateway.edge.router import WIRES
from orchestrator.gateway.protocols.anthropic_messages import AnthropicMessages
from orchestrator.gateway.protocols.openai_chat import OpenAIChat
from orchestrator.gateway.protocols.openai_responses import OpenAIResponses
from orchestrator.gateway.protocols.protocol import BadStream, Finish, PlainReply, StreamedError, TokenUsage
from orchestrator.gateway.protocols.sse import Event, EventReader, EventTooLarge, encode

STRANGE = ['{"type": "message_delta"}', "[]", "null", '{"choices": [1]}', '{"type": "content_block_delta", "index": 3}']
FINISHES = [Finish.STOP, Finish.LENGTH, Finish.REFUSAL]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=1500)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.path)
@given(text=TEXT, thinking=TEXT | st.just(""), finish=st.sampled_from(FINISHES), cut=st.integers(20, 99))
@settings(max_examples=40, deadline=None)
def test_an_answer_survives_its_own_stream(wire: Any, text: str, thinking: str, finish: Finish, cut: int) -> None:
    message = wire.compose(PlainReply("1", "m", 0, text, thinking, finish, TokenUsage(5, 7, reasoning_tokens=2)))
    wire.check(message)
    stream = b"".join(wire.stream(message, {"stream_options": {"include_usage": True}}))
    reader, assembler = EventReader(1 << 20), wire.assembler()
    for start in range(0, len(stream), cut):
        for event in reader.feed(stream[start : start + cut]):
            assert not assembler.over
            assembler.feed(event)
    assert assembler.complete
    assert assembler.over
    again = assembler.message()
    assert again == message
    assert wire.usage(again) == TokenUsage(5, 7, reasoning_tokens=2)
    assert wire.finish(again) is finish


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", Finish.STOP),
        ("stop_sequence", Finish.STOP),
        ("max_tokens", Finish.LENGTH),
        ("model_context_window_exceeded", Finish.CONTEXT_WINDOW),
        ("refusal", Finish.REFUSAL),
        ("tool_use", Finish.TOOL_USE),
        ("pause_turn", Finish.PAUSE),
        ("something new", Finish.OTHER),
        (None, Finish.OTHER),
    ],
)
def test_anthropic_finish(reason: str | None, expected: Finish) -> None:
    assert AnthropicMessages().finish({"stop_reason": reason}) is expected


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"finish_reason": "stop", "message": {"refusal": None}}, Finish.STOP),
        ({"finish_reason": "stop", "message": {"refusal": "I will not"}}, Finish.REFUSAL),
        ({"finish_reason": "length", "message": {}}, Finish.LENGTH),
        ({"finish_reason": "content_filter", "message": {}}, Finish.CONTENT_FILTER),
        ({"finish_reason": "tool_calls", "message": {}}, Finish.TOOL_USE),
        ({"finish_reason": None, "message": {}}, Finish.OTHER),
    ],
)
def test_chat_finish(choice: dict[str, Any], expected: Finish) -> None:
    assert OpenAIChat().finish({"choices": [choice]}) is expected


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ({"status": "completed", "output": []}, Finish.STOP),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}, Finish.LENGTH),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []}, Finish.CONTENT_FILTER),
        ({"status": "incomplete", "incomplete_details": None, "output": []}, Finish.OTHER),
        (
            {"status": "completed", "output": [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]},
            Finish.REFUSAL,
        ),
        ({"status": "completed", "output": [{"type": "function_call"}]}, Finish.TOOL_USE),
    ],
)
def test_responses_finish(response: dict[str, Any], expected: Finish) -> None:
    assert OpenAIResponses().finish(response) is expected


def test_usage_has_one_meaning() -> None:
    expected = TokenUsage(17, 30, cached_tokens=5, cache_write_tokens=2, reasoning_tokens=12)
    anthropic = {
        "input_tokens": 10,
        "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": 2,
        "output_tokens": 30,
        "output_tokens_details": {"thinking_tokens": 12},
    }
    chat = {
        "prompt_tokens": 17,
        "completion_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 12},
    }
    responses = {
        "input_tokens": 17,
        "output_tokens": 30,
        "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 2},
        "output_tokens_details": {"reasoning_tokens": 12},
    }
    assert AnthropicMessages().usage({"usage": anthropic}) == expected
    assert OpenAIChat().usage({"usage": chat}) == expected
    assert OpenAIResponses().usage({"usage": responses}) == expected
    for wire in WIRES:
        assert wire.usage({"usage": None}) is None


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.path)
@given(name=st.sampled_from([None, "message_start", "x"]), data=st.text(max_size=60) | st.sampled_from(STRANGE))
@settings(max_examples=40, deadline=None)
def test_a_strange_event_is_a_bad_stream_and_nothing_else(wire: Any, name: str | None, data: str) -> None:
    assembler = wire.assembler()
    try:
        assembler.feed(Event(name, data))
    except BadStream:
        return


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.path)
@pytest.mark.parametrize("message", [{}, {"type": "message"}, {"choices": [1]}, {"object": "response"}, {"choices": []}])
def test_a_strange_answer_is_a_bad_stream(wire: Any, message: dict[str, Any]) -> None:
    with pytest.raises(BadStream):
        wire.check(message)


def test_events_are_read_with_any_line_ending_and_comments_are_skipped() -> None:
    reader = EventReader(1000)
    raw = b": hi\r\n\r\nevent: a\r\ndata: 1\r\ndata: 2\r\n\r\n\n\ndata:3\n\nid: 7\ndata"
    assert list(reader.feed(raw)) == [Event("a", "1\n2"), Event(None, "3")]
    assert list(reader.feed(b": end")) == []
    assert list(reader.end()) == [Event(None, "end")]


LINES = st.sampled_from(
    [b"data: 1", b"data:2", b"data: ", b"event: a", b"event: ", b"id: 7", b": hi", b"", b"", b"data: \xff"]
)


@given(st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\n", b"\r\n"])), max_size=25), st.data())
@settings(max_examples=300, deadline=None)
def test_events_are_the_same_however_they_are_cut(lines: list[tuple[bytes, bytes]], data: st.DataObject) -> None:
    stream = b"".join(line + end for line, end in lines)
    slow = EventReader(1000)
    expected = [event for at in range(len(stream)) for event in slow.feed(stream[at : at + 1])] + [*slow.end()]
    quick, found, at = EventReader(1000), [], 0
    while at < len(stream):
        size = data.draw(st.integers(1, len(stream)))
        found += quick.feed(stream[at : at + size])
        at += size
    assert [*found, *quick.end()] == expected


@pytest.mark.parametrize(
    "piece",
    [b"data: " + b"x" * 2000 + b"\n\n", b"data: " + b"x" * 2000, b"data: " + b"x" * 600 + b"\n"],
    ids=["a whole one", "one line", "many lines"],
)
def test_an_endless_event_is_cut_off(piece: bytes) -> None:
    reader = EventReader(1000)
    with pytest.raises(EventTooLarge):
        for _ in range(3):
            list(reader.feed(piece))


def test_encode() -> None:
    assert encode({"a": "ü\n"}, "x") == b'event: x\ndata: {"a":"\\u00fc\\n"}\n\n'
    assert encode("[DONE]") == b"data: [DONE]\n\n"


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_response_that_failed_without_a_reason_is_no_answer(status: str) -> None:
    with pytest.raises(StreamedError, match=status):
        OpenAIResponses().check({"object": "response", "status": status, "error": None, "output": []})


NULLS: list[tuple[Any, dict[str, Any]]] = [
    (
        AnthropicMessages(),
        {
            "type": "message",
            "content": [{"type": "text", "text": None}, {"type": "thinking", "thinking": None}],
            "stop_reason": "end_turn",
            "usage": None,
        },
    ),
    (
        OpenAIResponses(),
        {
            "object": "response",
            "status": "completed",
            "output": [
                {"type": "reasoning", "summary": None},
                {"type": "message", "content": [{"type": "output_text", "text": None}]},
                {"type": "function_call", "arguments": None},
            ],
        },
    ),
    (OpenAIChat(), {"choices": [{"message": {"content": None, "tool_calls": None}, "finish_reason": "stop"}]}),
]


@pytest.mark.parametrize(("wire", "message"), NULLS, ids=lambda each: getattr(each, "path", ""))
def test_an_answer_with_nothing_in_its_texts_can_be_streamed(wire: Any, message: dict[str, Any]) -> None:
    wire.check(message)
    reader, assembler = EventReader(1 << 20), wire.assembler()
    for event in reader.feed(b"".join(wire.stream(message, {}))):
        assembler.feed(event)
    assert assembler.complete


def test_an_error_object_is_an_error_whatever_is_around_it() -> None:
    with pytest.raises(StreamedError, match="busy"):
        AnthropicMessages().check({"error": {"type": "overloaded_error", "message": "busy"}})


@pytest.mark.parametrize("kind", ["ping", "something_new"])
def test_an_event_that_is_not_known_may_come_first(kind: str) -> None:
    assembler = AnthropicMessages().assembler()
    assembler.feed(Event(None, json.dumps({"type": kind})))
    assembler.feed(Event(None, '{"type": "message_start", "message": {"id": "m"}}'))
    assert assembler.message()["id"] == "m"
