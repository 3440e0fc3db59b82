"""Rows of our own in the columns in which benchmarks are published on the hub, each with what is expected of it."""

from __future__ import annotations

MMLU = [
    {
        "question": "How many legs has a spider?",
        "subject": "high_school_biology",
        "choices": ["2", "8", "0", "1"],
        "answer": 1,
    },
    {"question": "What is 1 - 1?", "subject": "abstract_algebra", "choices": ["1", "2", "0", "3"], "answer": 2},
]
MMLU_DEV = [
    {
        "question": f"Worked question {number} of {subject}?",
        "subject": subject,
        "choices": ["yes", "no", "both", "neither"],
        "answer": 3,
    }
    for subject in ("high_school_biology", "abstract_algebra")
    for number in range(7)
]
ARC = [
    {
        "id": "Made_2020_1",
        "question": "Which of these melts at room temperature?",
        "choices": {"text": ["ice", "iron", "glass", "salt"], "label": ["A", "B", "C", "D"]},
        "answerKey": "A",
    },
    {
        "id": "Made_2020_2",
        "question": "Which of these is a gas?",
        "choices": {"text": ["sand", "oxygen", "wood"], "label": ["1", "2", "3"]},
        "answerKey": "2",
    },
]
TRUTHFULQA = [
    {
        "question": f"Do carrots of kind {number} let people see in the dark?",
        "mc1_targets": {
            "choices": ["No", *(f"Yes, because of reason {letter}" for letter in "abcdefghijkl"[: 1 + number])],
            "labels": [1, *[0] * (1 + number)],
        },
        "mc2_targets": {"choices": ["No", "Yes"], "labels": [1, 0]},
    }
    for number in range(12)
]
GPQA = [
    {
        "Record ID": f"rec{number}",
        "Question": f"Which particle has charge {number}?\n",
        "Correct Answer": f"particle {number}\n",
        "Incorrect Answer 1": "another particle",
        "Incorrect Answer 2": "no particle",
        "Incorrect Answer 3": "every particle",
        "High-level domain": "Physics",
        "Subdomain": "Made",
    }
    for number in range(24)
]
MATH_500 = [
    {
        "problem": "What is $\\frac{1}{4} + \\frac{1}{4}$?",
        "solution": "Half: $\\boxed{\\frac{1}{2}}$.",
        "answer": "\\frac{1}{2}",
        "subject": "Prealgebra",
        "level": 1,
        "unique_id": "test/prealgebra/1.json",
    },
    {
        "problem": "For which $x$ is $x^2 \\le x$?",
        "solution": "For $\\boxed{[0,1]}$.",
        "answer": "[0,1]",
        "subject": "Algebra",
        "level": 3,
        "unique_id": "test/algebra/2.json",
    },
]
AIME_2024 = [
    {"id": 60, "problem": "Find $20 + 5$.", "solution": "", "answer": "025", "url": "", "year": "2024"},
]
AIME_2025 = [{"problem": "Find $70 + 7$.", "answer": "77", "id": "0"}]
IFEVAL = [
    {
        "key": 1000,
        "prompt": "Describe a sunrise without commas in at least 5 words. Wrap the answer in double quotation marks.",
        "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words", "startend:quotation"],
        "kwargs": [
            {"num_words": None, "relation": None},
            {"num_words": 5, "relation": "at least"},
            {"num_words": None, "relation": None},
        ],
    }
]
BBH = {
    "boolean_expressions": [{"input": "not ( True ) and ( True ) is", "target": "False"}],
    "dyck_languages": [{"input": "Complete the sequence. Input: [ ( <", "target": "> ) ]"}],
    "word_sorting": [{"input": "Sort the following words alphabetically: List: pear apple", "target": "apple pear"}],
    "date_understanding": [{"input": "Which day? Options:\n(A) 01/02/2020\n(B) 02/02/2020", "target": "(B)"}],
}
LCB_EXECUTION = [
    {
        "question_id": "2777",
        "id": "sample_0",
        "function_name": "double",
        "code": "def double(values: List[int]) -> List[int]:\n    return [2 * value for value in values]",
        "input": "double(values = [1, 2])",
        "output": "[2, 4]",
        "numsteps": 7,
        "problem_id": "made-1",
        "contest_id": "weekly-1",
        "contest_date": "2023-08-21T00:00:00",
        "difficulty": "easy",
    }
]
LCB_TEST_OUTPUT = [
    {
        "question_title": "is-even",
        "question_content": "Say whether n is even.",
        "question_id": "9001",
        "contest_id": "weekly-1",
        "contest_date": "2023-08-21T00:00:00",
        "difficulty": "easy",
        "test": '[{"input": "4\\n\\"up\\"", "output": "true", "testtype": "functional"}]',
        "starter_code": "class Solution:\n    def isEven(self, n: int, mode: str) -> bool:\n        ",
        "function_name": "isEven",
        "test_id": 0,
    }
]
SIMPLEQA = [
    {
        "metadata": "{'topic': 'Geography', 'answer_type': 'Place', 'urls': ['https://example.org/kenya']}",
        "problem": "What is the capital of Kenya?",
        "answer": "Nairobi",
    },
    {"metadata": "{}", "problem": "In which year did the made-up bridge open?", "answer": "1931"},
]
