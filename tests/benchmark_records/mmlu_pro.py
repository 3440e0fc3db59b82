"""Questions in MMLU-Pro's layout with outputs of a model that never was, and the letter of each by the published rules."""

from __future__ import annotations

from typing import Any

_OPTIONS = ["red", "green", "blue", "white", "black", "grey", "pink", "brown", "gold", "none of these"]

TEXTS: list[tuple[str | None, str | None, str | None]] = [
    ("The sky is blue. The answer is (C).\n", "C", "C"),
    ("The answer is C", "C", "C"),
    ("So the **answer is (E)**.", "E", "E"),
    ("One thinks the answer is (A). It is not: the answer is (D).", "A", "D"),
    ("I first said the answer is (B), then the answer is (F), and last the answer is (G).", "B", "G"),
    ("The answer is Black, as B says.", "B", "B"),
    ("The answer is Increase", "I", None),
    ("Answer: H", "H", "H"),
    ("Answer: A or, on the same line, Answer: D", "D", "D"),
    ("All but J can be excluded", "J", "J"),
    ("No letter fits here.", None, None),
    ("", None, None),
    (None, None, None),
]
"""A text, the letter that the published rules find, and the one that ours find."""

WORD = 6
"""The text of which the published rules take the first letter of a word."""
LAST_OF_SEVERAL = (3, 4)
"""The texts that state several answers: the first counts there, the last here."""


def _row(number: int, text: str | None, letter: str | None) -> dict[str, Any]:
    return {
        "question_id": 9000 + number,
        "question": f"Which colour has flag {number}?",
        "options": _OPTIONS[: 4 + number % 7],
        "answer": "C",
        "answer_index": 2,
        "cot_content": "",
        "category": ("law", "physics", "other")[number % 3],
        "src": "made",
        "pred": letter,
        "model_outputs": text,
    }


OUTPUTS: list[dict[str, Any]] = [
    *(_row(number, text, letter) for number, (text, letter, _) in enumerate(TEXTS)),
    {**_row(99, "The answer is (C).", "C"), "answer_index": 1},
]
"""One of them contradicts itself: its answer is C, its index that of B."""
CONTRADICTION = "answer 'C' and answer_index 1 disagree"
