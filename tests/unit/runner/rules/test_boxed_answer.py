"""Mathematical answers in a model's text."""

from __future__ import annotations

import pytest

from runner.rules.boxed_answer import BoxedRule, extract_boxed


@pytest.mark.parametrize(
    ("text", "answer", "rule"),
    [
        (r"So it is \boxed{42}.", "42", BoxedRule.BOXED),
        (r"First \boxed{1}, but then \boxed{\frac{1}{2}}.", r"\frac{1}{2}", BoxedRule.BOXED),
        (r"\boxed{\left\{ x \mid x > 0 \right\}} is it", r"\left\{ x \mid x > 0 \right\}", BoxedRule.BOXED),
        (r"\fbox{7} and \boxed 8 end", "8", BoxedRule.BOXED),
        (r"$$\boxed{ $x^2$ }$$", "x^2", BoxedRule.BOXED),
        (r"<think>\boxed{1}</think> The answer is $\sqrt{2}$.", r"\sqrt{2}", BoxedRule.STATED),
        ("**Final answer:** \\(\\frac{3}{4}\\)", r"\frac{3}{4}", BoxedRule.STATED),
        ("The answer to this is not hard.\nAnswer: 12", "12", BoxedRule.STATED),
        (r"It ends inside \boxed{\frac{1}{2}", None, BoxedRule.NONE),
        (r"\boxed{}", None, BoxedRule.NONE),
        ("I do not know 42.", None, BoxedRule.NONE),
    ],
)
def test_the_last_box_counts_else_what_is_stated(text: str, answer: str | None, rule: BoxedRule) -> None:
    found = extract_boxed(text)
    assert (found.code, found.rule) == (answer, rule)


def test_only_a_closed_box_shows_that_a_text_which_was_cut_off_holds_the_answer() -> None:
    assert extract_boxed(r"\boxed{12} since").complete
    assert not extract_boxed("The answer is 12").complete
    assert not extract_boxed(r"\boxed{1} or rather \boxed{\frac{1}{2}").complete
