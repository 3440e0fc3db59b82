"""Word problems with worked answers in GSM8K's layout."""

from __future__ import annotations

from typing import Any

PROBLEMS: list[dict[str, Any]] = [
    {
        "question": "Mira has 4 boxes of 6 pens and gives 5 pens away. How many pens does she have?",
        "answer": "She had 4 * 6 = <<4*6=24>>24 pens.\nShe has 24 - 5 = <<24-5=19>>19 left.\n#### 19",
    },
    {
        "question": "A house of $1,200,000 gains a quarter of its price. What is it worth?",
        "answer": "It gains 1200000 / 4 = $<<1200000/4=300000>>300,000.\nIt is worth $1,500,000.\n#### 1,500,000",
    },
    {
        "question": "It is 3 degrees and gets 8 degrees colder. How many degrees is it?",
        "answer": "3 - 8 = <<3-8=-5>>-5 degrees, and not 11.\n#### -5",
    },
    {
        "question": "Two and a half litres are split in two. How many litres is one part?",
        "answer": "2.5 / 2 = <<2.5/2=1.25>>1.25\n#### 1.25",
    },
    {"question": "How many legs do 0 cats have?", "answer": "0 * 4 = <<0*4=0>>0\n#### 0"},
]
NUMBERS = ["19", "1500000", "-5", "1.25", "0"]
"""Their answers, in the same order."""
