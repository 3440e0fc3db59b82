"""The file that describes a benchmark: short forms, mistakes, digests."""

from __future__ import annotations

import pytest

from orchestrator.benchmarks.definition import Definition
from orchestrator.benchmarks.service import described, parsed
from orchestrator.datasets.errors import BadSource
from runner.contract.rules.grading import By, Find

SMALLEST = "name: capitals\nrecords: capitals.csv\njudge: exact\n"


def test_ten_lines_are_enough() -> None:
    definition = parsed(
        "name: capitals\n"
        "records: capitals.csv\n"
        "fields: {id: id, input: question, target: answer}\n"
        "prompt: |\n"
        "  {{ input }}\n"
        "  Answer with the name of the city only.\n"
        "judge: {by: exact, ignore: [case]}\n"
    )
    assert definition.records.files == ("capitals.csv",)
    assert definition.prompt.template.startswith("{{ input }}")
    assert (definition.answer.find, definition.judge.by) == (Find.TEXT, By.EXACT)


@pytest.mark.parametrize(
    ("judge", "find"),
    [
        ("number", Find.NUMBER),
        ("json", Find.JSON),
        ("stdin", Find.CODE),
        ("assertions", Find.CODE),
        ("contains", Find.TEXT),
        ("regex", Find.TEXT),
    ],
)
def test_each_judge_has_a_usual_answer(judge: str, find: Find) -> None:
    assert parsed(SMALLEST.replace("exact", judge)).answer.find is find


@pytest.mark.parametrize(
    ("text", "find", "option"),
    [
        ("answer: last_line", Find.LAST_LINE, None),
        ("answer: {regex: 'is (\\w+)'}", Find.REGEX, "is (\\w+)"),
        ("answer: {json: $.answer}", Find.JSON, "$.answer"),
        ("answer: {find: regex, pattern: x}", Find.REGEX, "x"),
    ],
)
def test_short_forms_of_the_answer(text: str, find: Find, option: str | None) -> None:
    answer = parsed(f"{SMALLEST}{text}\n").answer
    assert (answer.find, answer.pattern or answer.path) == (find, option)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name: Capitals\nrecords: a.csv\njudge: exact", "name: String should match"),
        ("name: a\njudge: exact", "records: Field required"),
        ("name: a\nrecords: {files: [x.csv], hub: a/b}\njudge: exact", "name exactly one of"),
        ("name: a\nrecords: {split: test}\njudge: exact", "name exactly one of"),
        ("name: a\nrecords: {files: [x.csv], split: test}\njudge: exact", "belong to `hub`"),
        ("name: a\nrecords: x.csv\njudge: {by: exact, tol: 1}", "unknown: tol"),
        ("name: a\nrecords: x.csv\njudge: {by: exact, tolerance: 1}", "only `by: number`"),
        ("name: a\nrecords: x.csv\njudge: {by: number, ignore: [case]}", "takes no `ignore`"),
        ("name: a\nrecords: x.csv\njudge: choice", "needs the field `choices`"),
        ("name: a\nrecords: x.csv\njudge: exact\nfields: {shuffle: true}", "need the field `choices`"),
        ("name: a\nrecords: x.csv\njudge: stdin\nanswer: text", "`answer` must be `code`"),
        ("name: a\nrecords: x.csv\njudge: exact\nanswer: {regex: '(?=x)'}", "run in linear time"),
        ("name: a\nrecords: x.csv\njudge: exact\nanswer: {find: regex}", "needs a `pattern`"),
        ("name: a\nrecords: x.csv\njudge: exact\nprompts: x", "prompts: Extra inputs"),
        ("name: a\nrecords: x.csv\njudge: ['x']", "judge"),
        ("name: a\nrecords: x.csv\njudge: model", "`by: model` needs `model` and `rubric`"),
        ("name: a\nrecords: x.csv\njudge: {by: model, model: m}", "judge.rubric: Field required"),
        ("name: a\nrecords: x.csv\njudge: {by: exact, model: m, rubric: r}", "and only it takes them"),
        ("name: a\nrecords: x.csv\njudge: {by: model, model: m, rubric: r, samples: 2}", "must be odd"),
        ("name: a\nrecords: x.csv\njudge: {by: model, model: m, rubric: r, grade: {A: 1}}", "unknown: grade"),
        ("name: a\nrecords: x.csv\njudge: {by: model, model: m, rubric: " + "r" * 100_001 + "}", "at most 100000"),
        ("name: a\nrecords: x.csv\njudge: {by: model, model: m, rubric: r, grades: {A: 1, B: .nan}}", "cannot be sent"),
        ("name: a\nrecords: x.csv\njudge: exact\nlabelled: {split: x}", "name exactly one of"),
        ("name: a\nrecords: x.csv\njudge: {by: regex, pattern: '" + "(a{1000}){1000}" + "'}", "the pattern cannot be used"),
        ("name: a\nrecords: x.csv\njudge: {by: regex, pattern: '" + "a|" * 50_000 + "b'}", "the pattern cannot be used"),
        ("name: a\nrecords: x.csv\njudge: exact\nanswer: {regex: '(.*)*$(?R)'}", "the pattern cannot be used"),
        ("a: &a {b: *a}", "Circular reference"),
        ("a: &a [*a, *a]", "Circular reference"),
        ("<<: [" + ", ".join(["{a: 1}"] * 3) + "]\nname: a", "records: Field required"),
        ("- a\n- b", "not a list of names and values"),
        ("name: [", "is not YAML"),
        ("name: !!python/object/apply:os.system [ls]", "is not YAML"),
        ("x0: &x0 [a, a]\n" + "".join(f"x{n + 1}: &x{n + 1} [*x{n}, *x{n}]\n" for n in range(30)), "larger than 1 MiB"),
        ("name: " + "[" * 5_000, "nested too deeply"),
    ],
)
def test_a_mistake_is_named(text: str, sentence: str) -> None:
    with pytest.raises(BadSource) as raised:
        parsed(text)
    assert sentence in raised.value.detail


@pytest.mark.parametrize("name", ["sample", "gsm8k", "new"])
def test_names_of_our_own_are_refused(name: str) -> None:
    with pytest.raises(BadSource, match="choose another"):
        described(None, SMALLEST.replace("capitals\n", f"{name}\n", 1))


def test_the_digest_covers_what_decides_scores() -> None:
    def digest(text: str) -> str:
        return parsed(text).digest

    same = [SMALLEST, SMALLEST.replace("capitals.csv", "other.csv"), SMALLEST + "description: For people.\nlicence: MIT\n"]
    assert len(set(map(digest, same))) == 1
    others = ["prompt: x\n", "answer: last_line\n", "fields: {input: question}\n"]
    assert len({digest(SMALLEST), *(digest(SMALLEST + other) for other in others)}) == 4
    assert digest(SMALLEST) != digest(SMALLEST.replace("exact", "contains"))
    assert parsed(SMALLEST).rules.prompt_version.startswith("capitals-")


def test_the_judge_and_its_rubric_are_part_of_the_prompt_version() -> None:
    def version(model: str, rubric: str) -> str:
        judge = f"{{by: model, model: {model}, rubric: {rubric}}}"
        return parsed(f"name: a\nrecords: x.csv\njudge: {judge}").rules.prompt_version

    assert version("m", "r") == version("m", "r")
    assert len({version("m", "r"), version("n", "r"), version("m", "s")}) == 3


def test_a_definition_survives_its_own_form() -> None:
    definition = parsed(SMALLEST + "answer: {regex: x}\nprompt: {system: s, template: t}\n")
    assert Definition.model_validate(definition.model_dump(mode="json")) == definition
