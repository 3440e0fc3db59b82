"""A benchmark of one's own, from its description to verdicts: REST, page, command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.benchmarks.building.pack import Origin, build_benchmark, preview
from orchestrator.benchmarks.building.rendering import rendering
from orchestrator.benchmarks.service import parsed
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.errors import BadSource
from orchestrator.runs import queries as run_queries
from tests.served import Service
from tests.service.datasets.test_routes import added

CAPITALS = """\
name: capitals
licence: CC0-1.0
records: capitals.csv
fields: {id: id, input: question, target: answer, category: continent}
prompt: |
  {{ input }}
  Answer with the name of the city only.
judge: {by: exact, ignore: [case, punctuation]}
"""
RECORDS = "id,question,answer,continent\nfr,Capital of France?,Paris,Europe\nke,Capital of Kenya?,Nairobi,Africa\nxx,,,\n"


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    catalogue = Catalogue(tmp_path / "data")
    catalogue.prepare()
    return catalogue


@pytest.fixture
def origin(tmp_path: Path, catalogue: Catalogue) -> Origin:
    path = tmp_path / "capitals.csv"
    path.write_text(RECORDS)
    return Origin({"capitals.csv": path}, catalogue)


def test_a_pack_is_built_with_its_rules(origin: Origin, catalogue: Catalogue) -> None:
    built = build_benchmark(catalogue.packs, parsed(CAPITALS), origin)
    assert built.problems == 2
    assert [str(reason) for reason in built.left_out] == ["capitals.csv row 3: its input (question) is empty"]
    info = catalogue.get("capitals")
    assert (info.adapter, info.problems, info.licence) == ("defined", 2, "CC0-1.0")
    assert info.rules == parsed(CAPITALS).rules
    (record,) = catalogue.records("capitals", ["ke"])
    assert record == {"prompt": "Capital of Kenya?\nAnswer with the name of the city only.", "target": "Nairobi"}
    catalogue.verify("capitals")


def test_other_rules_give_another_digest(origin: Origin, catalogue: Catalogue) -> None:
    first = build_benchmark(catalogue.packs, parsed(CAPITALS), origin).digest
    again = build_benchmark(catalogue.packs, parsed(CAPITALS + "description: For people.\n"), origin).digest
    other = build_benchmark(catalogue.packs, parsed(CAPITALS.replace("exact", "contains")), origin).digest
    assert first == again != other


def test_records_of_a_dataset_that_is_here(catalogue: Catalogue) -> None:
    text = (
        "name: titles\nrecords: {pack: sample}\njudge: contains\n"
        "fields: {id: id, input: question_content, target: question_title, difficulty: difficulty}\n"
    )
    shown = preview(parsed(text), Origin({}, catalogue), 3)
    assert len(shown.problems) == 3
    assert shown.problems[0]["entry"]["difficulty"] == "easy"


def test_nothing_half_built_is_left(origin: Origin, catalogue: Catalogue) -> None:
    before = sorted(catalogue.packs.iterdir())
    for text in (CAPITALS.replace("answer,", "reply,"), CAPITALS.replace("id: id", "id: '{{ 1 }}'")):
        with pytest.raises(BadSource):
            build_benchmark(catalogue.packs, parsed(text), origin)
    Path(origin.files["capitals.csv"]).write_text(RECORDS + "fr,Again?,Paris,Europe\n")
    with pytest.raises(BadSource, match="fr"):
        build_benchmark(catalogue.packs, parsed(CAPITALS), origin)
    assert sorted(catalogue.packs.iterdir()) == before


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "took longer than"),
        ("{{ 'x' * 100000000000 }}", "needs too much memory"),
        ("{% for a in range(99999) %}{{ 'x' * 100 }}{% endfor %}", "more than 2000000 characters"),
        ("{{ cycler.__init__.__globals__ }}", "unsafe"),
    ],
)
def test_hostile_templates_are_contained(template: str, sentence: str, catalogue: Catalogue) -> None:
    text = f"name: hostile\nrecords: [{{input: a, target: b}}]\nprompt: {json.dumps(template)}\njudge: exact\n"
    definition = parsed(text)
    with rendering(definition, row_s=1.0) as renderer:
        try:
            why = renderer.problem("record 1", 1, definition.records.rows[0])["why"]
        except BadSource as error:
            why = error.detail
    assert sentence in why
    assert "_globals" not in why.replace(template, "").replace("__globals__", "")


@pytest.mark.parametrize(
    ("rubric", "sentence"),
    [
        ("{{ answer }}", "cannot be filled in"),  # the answer is not known here, and never meets a template
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "took longer than"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "unsafe"),
        ("{{ self._TemplateReference__context }}", "cannot be filled in"),
        ("{% for a in range(99999) %}{{ 'x' * 100 }}{% endfor %}", "more than 2000000 characters"),
        ("{% if false %}x{% endif %} ", "rubric is empty"),
    ],
)
def test_hostile_rubrics_are_contained(rubric: str, sentence: str) -> None:
    judge = {"by": "model", "model": "m", "rubric": rubric}
    definition = parsed(json.dumps({"name": "hostile", "records": [{"input": "a", "target": "b"}], "judge": judge}))
    with rendering(definition, row_s=1.0) as renderer:
        try:
            why = renderer.problem("record 1", 1, definition.records.rows[0])["why"]
        except BadSource as error:
            why = error.detail
    assert sentence in why


def test_records_cannot_bring_templates_into_the_rubric() -> None:
    judge = {"by": "model", "model": "m", "rubric": "It must be {{ target }}."}
    row = {"input": "{{ 7 * 7 }}", "target": "{{ cycler.__init__.__globals__ }}"}
    definition = parsed(json.dumps({"name": "hostile", "records": [row], "judge": judge}))
    with rendering(definition) as renderer:
        record = renderer.problem("record 1", 1, row)["record"]
    assert record["rubric"] == f"It must be {row['target']}."
    assert record["question"] == "{{ 7 * 7 }}"


@pytest.mark.anyio
async def test_described_over_rest(service: Service) -> None:
    client = service.client
    body: dict[str, Any] = {"text": CAPITALS, "files": {}}
    refused = await client.post("/api/benchmarks", json=body)
    assert refused.status_code == 422
    assert "capitals.csv" in refused.json()["detail"]
    uploaded = await client.post("/api/benchmarks/files", params={"filename": "capitals.csv"}, content=RECORDS.encode())
    assert uploaded.status_code == 201
    body["files"] = {"capitals.csv": uploaded.json()["file"]}
    checked = (await client.post("/api/benchmarks/check", json=body)).json()
    assert [problem["id"] for problem in checked["problems"]] == ["fr", "ke"]
    assert [trial["passed"] for trial in checked["problems"][0]["trials"]] == [True, False]
    assert (await client.post("/api/benchmarks", json=body)).status_code == 202
    assert (await added(service, "capitals"))["problems"] == 2
    shown = (await client.get("/api/benchmarks/capitals")).json()
    assert shown["definition"]["judge"]["by"] == "exact"
    assert shown["prompt_version"] == checked["prompt_version"]
    used = await client.post("/api/benchmarks/check", json=body)
    assert used.status_code == 422
    assert "upload it again" in used.json()["detail"]
    for handle in ("../secret", "kept-x", ""):
        assert (await client.post("/api/benchmarks/check", json={**body, "files": {"a": handle}})).status_code == 422


@pytest.mark.anyio
async def test_a_run_carries_the_rules_to_its_runner(service: Service) -> None:
    definition = {"name": "sums", "records": [{"input": "1+1", "target": 2}], "judge": "number"}
    assert (await service.client.post("/api/benchmarks", json={"definition": definition})).status_code == 202
    await added(service, "sums")
    run_id = await service.new_run(benchmarks=["sums"], sample_size=1)
    task = await service.services.db.read(lambda session: run_queries.get(session, run_id).task)  # type: ignore[union-attr]
    (part,) = task.benchmarks
    assert (part.adapter, part.rules.judge.by, part.rules.answer.find) == ("defined", "number", "number")


@pytest.mark.anyio
async def test_described_on_the_page(service: Service) -> None:
    form = {"text": CAPITALS, "records": RECORDS, "action": "check"}
    checked = await service.client.post("/benchmarks/new", data=form)
    assert checked.status_code == 200
    assert "Capital of France?" in checked.text
    assert "wrong answer" in checked.text
    wrong = await service.client.post("/benchmarks/new", data={**form, "text": "name: A"})
    assert wrong.status_code == 422
    assert "records: Field required" in wrong.text
    sent = await service.client.post("/benchmarks/new", data={**form, "action": "add"}, follow_redirects=False)
    assert sent.headers["location"].endswith("/datasets")
    await added(service, "capitals")
    for path in ("/benchmarks", "/benchmarks/capitals"):
        assert "capitals" in (await service.client.get(path)).text
