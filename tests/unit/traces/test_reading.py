"""Files of traces in every format: what is taken, what is left out and where it stood; spans that lie apart."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import Invalid
from orchestrator.traces import documents
from orchestrator.traces.reading import Format, Gathering, LeftOut, records
from orchestrator.traces.records import TraceRecord

SPAN = {"startTimeUnixNano": "1", "endTimeUnixNano": "2000001"}


def text(value: str) -> dict[str, str]:
    return {"stringValue": value}


def span(trace: str, own: str, parent: str = "", start: int = 1, **attributes: str) -> dict[str, Any]:
    return {
        "traceId": trace,
        "spanId": own,
        "parentSpanId": parent,
        "name": own,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 1_000_000),
        "attributes": [{"key": key.replace("__", "."), "value": text(value)} for key, value in attributes.items()],
    }


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    service = {"attributes": [{"key": "service.name", "value": text("shop")}]}
    return {"resourceSpans": [{"resource": service, "scopeSpans": [{"spans": list(spans)}]}]}


def read(tmp_path: Path, body: bytes, wanted: Format = Format.AUTO) -> tuple[list[TraceRecord], list[LeftOut]]:
    path = tmp_path / "traces"
    path.write_bytes(body)
    found = list(records(path, wanted))
    return [each for each in found if isinstance(each, TraceRecord)], [each for each in found if isinstance(each, LeftOut)]


def lines(*rows: Any) -> bytes:
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()


def test_plain_lines_and_what_is_wrong_with_some(tmp_path: Path) -> None:
    body = lines(
        {"id": "a", "input": "q", "output": "r", "label": "good", "user": "u1"},
        "{broken",
        {"id": "b"},
        "",
        {"id": 7, "output": {"x": 1}, "steps": [{"name": "s"}], "metadata": {"k": "v"}},
        {"id": "c", "input": "q", "steps": "none"},
        {"id": "d", "input": "q", "label": "perhaps"},
        {"input": "nameless"},
        '{"id": "e", "input": NaN}',
        [1],
    )
    good, bad = read(tmp_path, body)
    assert [(each.id, each.label and each.label.value) for each in good] == [
        ("a", "positive"),
        ("7", None),
        (good[2].digest[:32], None),
    ]
    assert good[0].data == {"input": "q", "output": "r", "steps": [], "metadata": {"user": "u1"}}
    assert [each.line for each in bad] == [2, 3, 6, 7, 9, 10]
    assert "neither" in bad[1].reason


@pytest.mark.parametrize("packed", [False, True])
def test_an_array_a_document_and_gzip_are_read_in_pieces(
    tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "CHUNK", 7)
    rows = [{"id": f"t{number}", "input": "é" * number, "output": number} for number in range(40)]
    body = json.dumps(rows, ensure_ascii=False).encode()
    good, bad = read(tmp_path, gzip.compress(body) if packed else body)
    assert [each.data["output"] for each in good] == list(range(40))
    assert not bad


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b'[{"id": "a", "input": 1}, {"id": "b", ', "record 2"),
        (b'[{"id": "a", "input": 1}', "the end"),
        (b'[{"id": "a", "input": 1}, nonsense]', "record 2"),
    ],
)
def test_a_broken_array_gives_what_came_before(tmp_path: Path, body: bytes, where: str) -> None:
    path = tmp_path / "traces"
    path.write_bytes(body)
    first, second = list(documents.read(path))
    assert isinstance(first, documents.Document)
    assert isinstance(second, documents.UnreadableDocument)
    assert second.place == where


@pytest.mark.parametrize("body", [b"", b" \n\n", gzip.compress(b"{}\n" * 9999)[:60]], ids=["empty", "blank", "cut gzip"])
def test_a_file_without_any_document_is_refused(tmp_path: Path, body: bytes) -> None:
    with pytest.raises(Invalid):
        read(tmp_path, body)


def test_a_line_that_is_too_long_is_named_and_the_next_is_read(tmp_path: Path) -> None:
    path = tmp_path / "traces"
    path.write_bytes(b'{"id": "a", "input": "' + b"x" * 2000 + b'"}\n{"id": "b", "input": 1}\n')
    first, second = list(documents.read(path, max_bytes=1000))
    assert isinstance(first, documents.UnreadableDocument)
    assert isinstance(second, documents.Document)
    assert (first.line, second.line) == (1, 2)


def test_spans_of_a_trace_lie_anywhere_in_the_file(tmp_path: Path) -> None:
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]}])
    said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "In the yard."}]}])
    body = lines(
        otlp(span("t2", "root", input__value="hello", output__value="bye")),
        otlp(span("t1", "chat", "agent", 20, gen_ai__input__messages=messages, gen_ai__operation__name="chat")),
        otlp(span("t3", "silent")),
        otlp(span("t1", "agent", start=10), span("t1", "answer", "agent", 30, gen_ai__output__messages=said)),
    )
    good, bad = read(tmp_path, body)
    one, two = sorted(good, key=lambda each: each.id)
    assert (one.data["input"], one.data["output"]) == ("Where is it?", "In the yard.")
    assert [step["name"] for step in one.data["steps"]] == ["agent", "chat", "answer"]
    assert one.data["metadata"]["service"] == "shop"
    assert (two.data["input"], two.data["output"]) == ("hello", "bye")
    assert [(each.line, "gen_ai" in each.reason) for each in bad] == [(3, True)]


@pytest.mark.parametrize(
    ("own", "events"),
    [
        ({"gen_ai.prompt.0.content": "q1", "gen_ai.prompt.1.content": "q2", "gen_ai.completion.0.content": "a"}, []),
        ({}, [("gen_ai.content.prompt", "gen_ai.prompt", "q"), ("gen_ai.content.completion", "gen_ai.completion", "a")]),
        ({}, [("gen_ai.user.message", "content", "q"), ("gen_ai.choice", "message", "a")]),
    ],
    ids=["numbered", "events", "message events"],
)
def test_older_conventions(tmp_path: Path, own: dict[str, str], events: list[tuple[str, str, str]]) -> None:
    one = span("t", "s") | {
        "attributes": [{"key": key, "value": text(value)} for key, value in own.items()],
        "events": [{"name": name, "attributes": [{"key": key, "value": text(said)}]} for name, key, said in events],
    }
    (good,), bad = read(tmp_path, lines(otlp(one)))
    assert good.data["output"] == "a"
    assert good.data["input"] in ("q", ["q1", "q2"])
    assert not bad


def test_langfuse_traces_observations_pages_and_batches(tmp_path: Path) -> None:
    whole = {
        "id": "l1",
        "projectId": "p",
        "sessionId": "s",
        "input": '{"question": "q"}',
        "output": "a",
        "observations": [{"id": "o", "type": "GENERATION", "name": "g", "model": "m", "input": "x", "startTime": "2"}],
        "scores": [{"name": "helpful", "value": 1}],
    }
    apart = [
        {"id": "o2", "traceId": "l2", "type": "GENERATION", "input": "late", "output": "end", "startTime": "2"},
        {"id": "o1", "traceId": "l2", "type": "SPAN", "input": "early", "output": None, "startTime": "1"},
    ]
    batch = {
        "batch": [
            {"id": "e1", "type": "trace-create", "body": {"id": "l3", "input": "i"}},
            {"id": "e2", "type": "generation-create", "body": {"id": "g", "traceId": "l3", "output": "o"}},
            {"id": "e3", "type": "score-create", "body": {"traceId": "l3", "value": 1}},
        ]
    }
    good, bad = read(tmp_path, lines({"data": [whole], "meta": {}}, *apart, batch))
    by_id = {each.id: each.data for each in good}
    assert by_id["l1"]["input"] == {"question": "q"}
    assert by_id["l1"]["steps"][0]["model"] == "m"
    assert "helpful" not in json.dumps(by_id["l1"])
    assert (by_id["l2"]["input"], by_id["l2"]["output"]) == ("early", "end")
    assert (by_id["l3"]["input"], by_id["l3"]["output"]) == ("i", "o")
    assert not bad


def test_a_format_that_is_named_is_held_to(tmp_path: Path) -> None:
    _, bad = read(tmp_path, lines({"id": "a", "input": "x"}), Format.OTEL)
    assert "resourceSpans" in bad[0].reason


def test_gathering_goes_over_the_disk() -> None:
    with Gathering(part_bytes=300) as gathering:
        for number in range(60):
            gathering.add(f"k{number % 3}", {"n": number})
        gathering.add("large", "x" * (9 << 20))
        gathering.add("large", "y")
        groups = {key: (own, whole) for key, own, whole in gathering.groups()}
    assert groups.pop("large") == ([], False)
    assert {key: [piece["n"] for piece in own] for key, (own, _) in groups.items()} == {
        f"k{rest}": list(range(rest, 60, 3)) for rest in range(3)
    }
