"""`benchyard import` against a service: exports come back, and logs that Inspect wrote."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.served import Service
from tests.unit.cli.command_line import Benchyard

ROOT = Path(__file__).parents[3]
WRITER = """
import sys
from inspect_ai.log import read_eval_log, write_eval_log

log = read_eval_log(sys.argv[1])
log.eval.model = "openai/GPT other"
for number, sample in enumerate(log.samples, start=1):
    sample.id, sample.metadata, sample.input = number, {}, sys.argv[2 + number]
    sample.output.choices[0].message.content = "the answer " * 1000
    sample.output.completion = "the answer " * 1000
for path in sys.argv[2].split(","):
    write_eval_log(log, path)
"""


def exported(benchyard: Benchyard, path: Path) -> Path:
    run = benchyard("run", "-m", "demo-weak", "-n", "2", "-b", "sample", "--json").json["runs"][0]["id"]
    assert benchyard("export", run, "--format", "inspect", "--out", str(path)).code == 0
    return path


def test_logs_that_inspect_wrote_become_runs(service: Service, benchyard: Benchyard, tmp_path: Path) -> None:
    """Numbered by Inspect, so that what was asked decides; as Zstandard in a zip, and as JSON."""
    log = exported(benchyard, tmp_path / "run.eval")
    entries = service.services.catalogue.entries("sample")[:2]
    records = service.services.catalogue.records("sample", [entry.id for entry in entries])
    asked = [f"Solve this.\n\n{record['question_content']}" for record in records]
    copies = [tmp_path / "copy.eval", tmp_path / "copy.json"]
    programs = subprocess.run(
        [ROOT / "scripts/python-environment", "inspect-ai"], capture_output=True, text=True, check=True
    )
    python = Path(programs.stdout.strip()) / "python"
    subprocess.run([python, "-c", WRITER, log, ",".join(map(str, copies)), *asked], check=True)

    imported = benchyard("import", *map(str, copies), "--benchmark", "sample", "--json")
    assert imported.code == 0, imported.err
    for run, accepted in zip(imported.json["runs"], imported.json["accepted"], strict=True):
        assert (run["model"], run["trigger_type"], run["status"]) == ("openai/gpt-other", "import", "completed")
        assert (accepted["answers"], accepted["problems"], accepted["left_out"]) == (2, 2, 0)
    models = benchyard("models", "list", "--json").json
    assert [model["provider"] for model in models["items"] if model["slug"] == "openai/gpt-other"] == ["imported"]


def test_what_cannot_be_imported_is_a_sentence(service: Service, benchyard: Benchyard, tmp_path: Path) -> None:
    def refused(*argv: str) -> str:
        result = benchyard("import", *argv)
        assert result.code in (1, 2)
        return result.err

    assert "There is no file" in refused("nowhere.eval")
    odd = tmp_path / "odd.jsonl"
    odd.write_text(json.dumps({"task_id": 1, "completion": "x"}))
    assert "neither a log of Inspect nor samples of lm-eval" in refused(str(odd))
    samples = tmp_path / "samples_gsm8k_2026-11-18T10-00-00.1.jsonl"
    samples.write_text(json.dumps({"doc_id": 0, "doc": {}, "resps": [["x"]], "arguments": {}}))
    assert "says 'gsm8k', which is no benchmark here" in refused(str(samples))
    assert "does not say which model answered; name it with --model" in refused(str(samples), "-b", "sample")
    assert "There is no benchmark nope" in refused(str(samples), "-b", "nope")
    assert "no answer that could be graded" in refused(str(samples), "-b", "sample", "-m", "demo-weak")
    broken = tmp_path / "a.eval"
    broken.write_bytes(b"PK\x03\x04")
    assert "is cut short or damaged" in refused(str(broken))
