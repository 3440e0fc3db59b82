"""Readers over files that the real packages wrote, and over files that lie.

`sums.eval`: `sums_task.py.txt` under inspect-ai 0.3.285; `sums.json`: the same log as JSON, without its events. The samples
are those of lm-eval 0.4.13, the report is pytest's.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path

import pytest

from runner.contract.harness import MAX_ID_CHARS, MAX_TEXT_CHARS, ResultsFormat
from runner.harness.readers import nemo_evaluator
from runner.harness.readers.formats import READERS
from runner.harness.readers.item import HarnessItem, Progress, Unreadable, bounded
from runner.rules import zip_member

LOGS = Path(__file__).parent / "logs"
SAMPLES = "samples_mysums_2026-11-18T10-41-32.660182.jsonl"


def read(format: ResultsFormat, content: bytes, name: str = "x", progress: Progress | None = None) -> list[HarnessItem]:
    return list(READERS[format](io.BytesIO(content), name, progress or Progress(final=True)))


def mean(items: list[HarnessItem]) -> float:
    scores = [item.score for item in items if item.score is not None]
    return sum(scores) / len(scores)


@pytest.mark.parametrize("name", ["sums.eval", "sums.json"])
def test_inspect_logs_give_the_score_that_inspect_reports(name: str) -> None:
    progress = Progress()
    items = read(ResultsFormat.INSPECT, (LOGS / name).read_bytes(), name, progress)
    assert progress.expected == len(items) == 12
    assert mean(items) == pytest.approx(0.8333333333333334), "accuracy of its first scorer, as Inspect printed it"
    assert {(item.id, item.sample_index) for item in items} == {(f"sums/s{n}", epoch) for n in range(6) for epoch in (0, 1)}
    first = next(item for item in items if item.id == "sums/s0" and item.sample_index == 0)
    assert (first.input, first.output) == ("What is 2+2? (0)", "Default: the answer is 4")
    assert first.reason.endswith("half: 1.0")


def test_a_log_that_grows_is_read_on_from_where_it_was() -> None:
    content = (LOGS / "sums.eval").read_bytes()
    progress = Progress()
    reader = READERS[ResultsFormat.INSPECT](io.BytesIO(content), "sums.eval", progress)
    early = [next(reader) for _ in range(5)]
    reader.close()  # type: ignore[attr-defined]
    late = read(ResultsFormat.INSPECT, content, "sums.eval", progress)
    assert len({(item.id, item.sample_index) for item in early + late}) == 12
    assert 7 <= len(late) <= 8, "at most the one that was not finished is read again"
    assert read(ResultsFormat.INSPECT, content, "sums.eval", progress) == []


def test_lm_eval_samples_give_the_score_that_lm_eval_reports() -> None:
    items = read(ResultsFormat.LM_EVAL, (LOGS / SAMPLES).read_bytes(), f"out/counting/{SAMPLES}")
    assert mean(items) == pytest.approx(0.8333333333333334)
    assert items[0].id == "mysums/0"
    assert items[0].input == "user: Q: what is 2+2? (0)\nA:"
    assert items[0].output == "Default: the answer is 4"
    assert items[0].reason == "target: 4\nlast-number: 4"
    assert read(ResultsFormat.LM_EVAL, b"{}", "out/results_2026.json") == []


NEMO = """
command: 'export API_KEY=$API_KEY && simple_evals --model m
  --eval_name gpqa_diamond '
config: {output_dir: /results, params: {extra: {}, limit_samples: 10}, type: gpqa_diamond}
git_hash: ''
results:
  groups:
    gpqa_diamond:
      metrics: {score: {scores: {micro: {stats: {}, value: 0.4}}}}
  tasks:
    gpqa_diamond:
      metrics:
        score:
          scores:
            macro: {stats: {}, value: 0.3}
            micro:
              stats: {count: 10, stddev: 0.48989, stderr: 0.16329931618554522}
              value: 0.4
    ifeval:
      metrics:
        inst_level_strict_acc: {scores: {inst_level_strict_acc: {stats: {stderr: N/A}, value: 1}}}
        prompt_level_strict_acc: {scores: {prompt_level_strict_acc: {stats: {}, value: 0.5}}}
    wmt: {metrics: {bleu: {scores: {bleu: {stats: {}, value: 31.5}}}}}
    broken: {metrics: {acc: {scores: {acc: {stats: {}, value: .nan}}}}}
    empty: {metrics: {acc: {scores: {}}}}
target: {api_endpoint: {model_id: m, type: chat}}
"""


def test_nemo_evaluator_gives_one_item_per_task() -> None:
    progress = Progress(final=True)
    items = {item.id: item for item in read(ResultsFormat.NEMO_EVALUATOR, NEMO.encode(), "a/results.yml", progress)}
    scores = {name: item.score for name, item in items.items()}
    assert scores == {"gpqa_diamond": 0.4, "ifeval": 1.0, "wmt": 31.5, "broken": None, "empty": None}
    assert progress.expected == 5
    assert items["gpqa_diamond"].reason == "score/micro: 0.4 (count 10, stderr 0.163299, stddev 0.48989)\nscore/macro: 0.3"
    assert "prompt_level_strict_acc/prompt_level_strict_acc: 0.5" in items["ifeval"].reason
    assert "not between 0 and 1" in bounded(items["wmt"]).reason
    assert bounded(items["wmt"]).score is None
    assert "does not count" in items["broken"].reason
    unfinished = NEMO.encode()[: NEMO.index("stddev")]
    assert read(ResultsFormat.NEMO_EVALUATOR, unfinished, "results.yml", Progress(final=False)) == []
    assert read(ResultsFormat.NEMO_EVALUATOR, b"{}", "a/eval_factory_metrics.json") == [], "it has no scores"


def test_nemo_evaluator_without_tasks_has_groups_and_may_be_json() -> None:
    metrics = {"m": {"scores": {"s": {"value": True, "stats": {}}}}}
    document = {"tasks": None, "groups": {"all": {"groups": {"a": {"metrics": metrics}}, "metrics": metrics}, "b": {}}}
    items = read(ResultsFormat.NEMO_EVALUATOR, json.dumps(document).encode(), "results.json")
    assert [(item.id, item.score) for item in items] == [("all/a", 1.0)]


LAUGHS = "a0: &a0 {g: {metrics: {m: {scores: {s: {value: 1}}}}}}\n" + "".join(
    f"a{n}: &a{n} {{x: {{groups: *a{n - 1}}}, y: {{groups: *a{n - 1}}}}}\n" for n in range(1, 45)
)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no scores"),
        (b"results: {tasks: {}}", "no scores"),
        (b"results: [1, 2]", "no scores"),
        (b"- a\n- b", "no scores"),
        (b"results: {tasks: {a: 3, b: {metrics: 4}}}", "no scores"),
        (b"results: {tasks: ", "not YAML"),
        (b"\xff\xfe\x00", "not YAML"),
        (b"results: !!python/object/apply:os.system ['true']", "not YAML"),
        (b"? [a]\n: 1", "not YAML"),
        (b"a: " + b"[" * 1000, "nested"),
        (b"a: &a {b: 1}\nresults: {<<: *a}", "merges keys"),
        (f"{LAUGHS}results: {{groups: *a44}}".encode(), "too many groups"),
        (b"results: {groups: &g {x: {groups: *g}}}", "contain themselves"),
        (b"x" * (nemo_evaluator.MAX_BYTES + 1), "larger than"),
        (b"n: " + b"9" * 10_000, "not YAML"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_hostile_results_of_nemo_evaluator_are_refused(content: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read(ResultsFormat.NEMO_EVALUATOR, content, "results.yml")


@pytest.mark.parametrize("content", [b"[" * 100_000, b"{", b'{"tasks": [1]}', b"null", b"\x00"])
def test_damaged_json_of_nemo_evaluator_is_refused(content: bytes) -> None:
    with pytest.raises(Unreadable):
        read(ResultsFormat.NEMO_EVALUATOR, content, "results.json")


@pytest.mark.parametrize(
    "value", ["[*l, *l]", "{a: 1}", "abc", "null", "9" * 400, ".inf", "2026-11-18"], ids=lambda value: value[:12]
)
def test_a_value_that_is_no_number_does_not_count(value: str) -> None:
    text = f"l: &l [1]\nresults: {{tasks: {{t: {{metrics: {{m: {{scores: {{s: {{value: {value}}}}}}}}}}}}}}}"
    (item,) = read(ResultsFormat.NEMO_EVALUATOR, text.encode(), "results.yml")
    assert item.score is None
    assert "does not count" in item.reason


def test_a_number_of_hundreds_of_digits_is_no_score() -> None:
    with pytest.raises(Unreadable, match="neither passed"):
        read(ResultsFormat.JSON_LINES, b'{"id": "a", "score": ' + b"9" * 400 + b"}")


def test_a_junit_report_counts_failures_and_errors_but_not_what_was_skipped() -> None:
    items = read(ResultsFormat.JUNIT, (LOGS / "report.xml").read_bytes())
    assert {item.id: item.score for item in items} == {
        "test_suite::test_small[1]": 1.0,
        "test_suite::test_small[2]": 1.0,
        "test_suite::test_small[3]": 0.0,
        "test_suite::test_error": 0.0,
    }
    assert "assert 3 < 3" in items[2].reason


@pytest.mark.parametrize(
    ("line", "score", "reason"),
    [
        ({"id": "a", "passed": True}, 1.0, ""),
        ({"id": 7, "passed": False, "reason": "wrong"}, 0.0, "wrong"),
        ({"id": "a", "score": 0.25, "sample": 3}, 0.25, ""),
        ({"id": "a", "error": "no answer"}, None, "no answer"),
        ({"id": "a", "score": 7}, None, "its score 7 is not between 0 and 1, so it does not count. "),
    ],
)
def test_json_lines(line: dict[str, object], score: float | None, reason: str) -> None:
    (item,) = map(bounded, read(ResultsFormat.JSON_LINES, json.dumps(line).encode()))
    assert (item.id, item.score, item.reason) == (str(line["id"]), score, reason)
    assert item.sample_index == line.get("sample", 0)


def test_an_unfinished_line_is_read_when_it_is_finished() -> None:
    progress = Progress()
    assert len(read(ResultsFormat.JSON_LINES, b'{"id":"a","passed":true}\n{"id":"b"', progress=progress)) == 1
    rest = b'{"id":"a","passed":true}\n{"id":"b","passed":false}'
    progress.final = True
    assert [item.id for item in read(ResultsFormat.JSON_LINES, rest, progress=progress)] == ["b"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"nonsense\n", "the line at byte 0 is not JSON"),
        (b"[1]\n", "has no id"),
        (b'{"id": "a"}\n', "neither passed"),
        (b'{"id": "a", "score": NaN}\n', "neither passed"),
        (b"[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_wrong_with_a_line_is_said(content: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read(ResultsFormat.JSON_LINES, content)


def bomb(how: int, size: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/a_epoch_1.json", b" " * size)
    return file.getvalue()


def test_a_zip_bomb_is_contained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_member, "MAX_MEMBER_BYTES", 1 << 20)
    with pytest.raises(Unreadable, match="unpacks to more than"):
        read(ResultsFormat.INSPECT, bomb(zipfile.ZIP_DEFLATED, 64 << 20), "x.eval")


def test_a_zip_that_lies_about_its_members_is_refused() -> None:
    honest = bomb(zipfile.ZIP_STORED, 10)
    place = honest.rindex(b"PK\x01\x02")
    lying = bytearray(honest)
    struct.pack_into("<I", lying, place + 42, 5)  # where the member is said to begin
    for content in (bytes(lying), honest[:-8], b"", b"PK\x05\x06" + bytes(18), bomb(zipfile.ZIP_BZIP2, 10)):
        with pytest.raises(Unreadable):
            read(ResultsFormat.INSPECT, content, "x.eval")


@pytest.mark.parametrize(
    "content",
    [
        b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><testsuite><testcase name="&b;"/></testsuite>',
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><testsuite/>',
        b"<testsuite><testcase>",
        b"<a>" * 100,
        b"",
    ],
)
def test_hostile_xml_is_refused(content: bytes) -> None:
    with pytest.raises(Unreadable):
        read(ResultsFormat.JUNIT, content)


def test_an_item_is_cut_to_size() -> None:
    item = bounded(HarnessItem("\x00" + "i" * 1000, 0.5, -3, "x" * 100_000, "y" * 100_000, "\ud800" * 9_000))
    assert len(item.id) == MAX_ID_CHARS
    assert "\x00" not in item.id
    assert (len(item.input), len(item.output), item.sample_index) == (MAX_TEXT_CHARS, MAX_TEXT_CHARS, 0)
    item.reason.encode()
