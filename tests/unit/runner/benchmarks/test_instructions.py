"""Instructions of IFEval: an answer that follows each and one that does not, by the published rules; and hostile answers."""

from __future__ import annotations

from typing import Any

import pytest

from runner.contract.events import Outcome
from runner.contract.rules.instructions import INSTRUCTIONS
from runner.contract.run_spec import ExecutionLimits
from runner.grading import instructions as grading
from runner.grading.instructions import judge_instructions
from runner.sandbox.executor import Executor
from runner.sandbox.inside.instructions import CHECKS, followed, sentences, words

AT_LEAST, LESS = "at least", "less than"
GERMAN = "Das ist ein ganz gewöhnlicher deutscher Satz über das Wetter von morgen."
EXAMPLES: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 3, "capital_relation": AT_LEAST},
        "NASA and ESA: WELL-DONE",
        "NASA and ESA",
    ),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": LESS},
        "Only ONE here.",
        "I'M here.",
    ),
    (
        "change_case:english_capital",
        {},
        "THIS IS AN ENGLISH SENTENCE ABOUT RAIN.",
        "THIS IS AN ENGLISH SENTENCE about rain.",
    ),
    (
        "change_case:english_lowercase",
        {},
        "this is an english sentence about rain.",
        "This is an english sentence about rain.",
    ),
    (
        "combination:repeat_prompt",
        {"prompt_to_repeat": "Say hello. "},
        "say hello.\nHello!",
        "Hello! Say hello.",
    ),
    ("combination:two_responses", {}, "one\n******\ntwo", "one\n******\none"),
    ("combination:two_responses", {}, "******one******two******", "one******two******three"),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[name] of [city]", "[name] of city"),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye.\nP. S. one more", "Bye. PS one more"),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "Bye.\np.p.s one more", "Bye. P.S. one more"),
    ("detectable_format:constrained_response", {}, "My answer is maybe.", "My answer is: maybe"),
    ("detectable_format:json_format", {}, '```json\n{"a": [1]}\n```', "{'a': 1}"),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "SECTION", "num_sections": 2},
        "SECTION 1\na\nSECTION 2\nb",
        "Section 1\na\nSection 2\nb",
    ),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* one\n- two\n**bold**", "* one"),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*a* and **b**", "*a* and ** **"),
    ("detectable_format:title", {}, "<<poem of joy>>\nla", "<<  >>"),
    ("keywords:existence", {"keywords": ["sun", "moon"]}, "Moonlight and sunlight", "Sunlight"),
    ("keywords:forbidden_words", {"forbidden_words": ["sun"]}, "Sunlight", "The SUN."),
    ("keywords:frequency", {"keyword": "sun", "frequency": 2, "relation": AT_LEAST}, "Sun, sunny", "sun"),
    ("keywords:frequency", {"keyword": "sun", "frequency": 2, "relation": LESS}, "Sun", "sun sun"),
    ("keywords:letter_frequency", {"letter": "Q", "let_frequency": 2, "let_relation": AT_LEAST}, "Qq", "q"),
    ("keywords:letter_frequency", {"letter": "#", "let_frequency": 1, "let_relation": LESS}, "none", "# one"),
    ("language:response_language", {"language": "de"}, GERMAN, "This is an ordinary English sentence about the weather."),
    ("language:response_language", {"language": "de"}, "123 456", "This is an ordinary English sentence about the weather."),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Moon"},
        "Sun is up.\n\n\"moon's down.",
        "Moon is up.\n\nSun is down.",
    ),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "***\none\n***\ntwo", "one\n***\n \n***\ntwo"),
    ("length_constraints:number_sentences", {"num_sentences": 3, "relation": LESS}, "Dr. No came. Why?", "One. Two. Three."),
    ("length_constraints:number_sentences", {"num_sentences": 2, "relation": AT_LEAST}, "One. Two", "3.5 of it"),
    ("length_constraints:number_words", {"num_words": 3, "relation": AT_LEAST}, "well-done you", "well done"),
    ("punctuation:no_comma", {}, "one; two", "one, two"),
    ("startend:end_checker", {"end_phrase": "Any questions?"}, 'Yes. "any Questions?"', "Any questions? No."),
    ("startend:quotation", {}, ' "quoted" ', '"quoted'),
]


@pytest.mark.parametrize(("name", "arguments", "right", "wrong"), EXAMPLES)
def test_each_instruction(name: str, arguments: dict[str, Any], right: str, wrong: str) -> None:
    assert set(arguments) == set(INSTRUCTIONS[name])
    assert followed(right, [[name, arguments]], False) == [True]
    assert followed(wrong, [[name, arguments]], False) == [False]
    assert followed(" \n", [[name, arguments]], True) == [False]


def test_every_published_instruction_has_a_check_and_an_example() -> None:
    assert set(INSTRUCTIONS) == set(CHECKS) == {name for name, *_ in EXAMPLES}


@pytest.mark.parametrize(
    ("answer", "name", "arguments"),
    [
        ('Here it is:\n"quoted"', "startend:quotation", {}),
        ('"quoted"\nHope it helps!', "startend:quotation", {}),
        ('Here:\n"quoted"\nHope it helps!', "startend:quotation", {}),
        ("Yes. **Any questions?**", "startend:end_checker", {"end_phrase": "Any questions?"}),
    ],
)
def test_loosely_the_first_and_last_line_and_asterisks_do_not_count(
    answer: str, name: str, arguments: dict[str, Any]
) -> None:
    assert followed(answer, [[name, arguments]], False) == [False]
    assert followed(answer, [[name, arguments]], True) == [True]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two! Three? Four", 4),
        ("Mr. Smith went to the U.S. in May. He stayed.", 2),
        ("It costs 3.50 in total. Yes.", 2),
        ("Wait... what? Oh...", 2),
        ('She said "No." Then she left.', 2),
        ("1. First\n2. Second", 3),
        ("J. R. Smith wrote it.", 1),
        ("", 0),
    ],
)
def test_sentences(text: str, count: int) -> None:
    assert sentences(text) == count


def test_words_are_divided_at_punctuation_and_contractions() -> None:
    assert words("I'M at (NASA), isn't it?") == ["I", "'M", "at", "(", "NASA", ")", ",", "is", "n't", "it", "?"]


async def judged(executor: Executor, answer: str, *names: str, loose: bool = False) -> Any:
    arguments = {name: chosen for name, chosen, *_ in EXAMPLES}
    instructions = [{"id": name, "arguments": arguments[name]} for name in names]
    return await judge_instructions(answer, instructions, executor, ExecutionLimits(), loose=loose, cpu_s=2.0)


@pytest.mark.anyio
async def test_the_verdict_names_what_was_not_followed(executor: Executor) -> None:
    names = ("punctuation:no_comma", "startend:quotation", "language:response_language")
    verdict = await judged(executor, f'Gut:\n"{GERMAN}"', *names)
    assert (verdict.outcome, verdict.tests_passed, verdict.tests_total) == (Outcome.WRONG_ANSWER, 2, 3)
    assert verdict.detail == "not followed: startend:quotation"
    assert [test.outcome for test in verdict.tests] == [Outcome.PASSED, Outcome.WRONG_ANSWER, Outcome.PASSED]
    assert (await judged(executor, f'Gut:\n"{GERMAN}"', *names, loose=True)).outcome is Outcome.PASSED


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("[" * 1_000_000, "detectable_content:number_placeholders"),
        ("a" * 1_000_000, "length_constraints:number_sentences"),
        ("[" * 100_000, "detectable_format:json_format"),
        ("<<" * 500_000, "detectable_format:title"),
        ("\x00\ud800, ", "punctuation:no_comma"),
    ],
)
async def test_a_hostile_answer_is_wrong_and_the_runner_goes_on(executor: Executor, answer: str, name: str) -> None:
    assert (await judged(executor, answer, name)).outcome is Outcome.WRONG_ANSWER
    assert (await judged(executor, "one two three", "punctuation:no_comma")).outcome is Outcome.PASSED


@pytest.mark.anyio
async def test_without_langdetect_the_answer_is_not_called_wrong(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = grading._program()
    monkeypatch.setattr(grading, "_program", lambda: source.replace("from langdetect", "from langdetect_not_installed"))
    verdict = await judged(executor, GERMAN, "language:response_language")
    assert verdict.outcome is Outcome.INFRA_ERROR
    assert "not installed" in verdict.detail
