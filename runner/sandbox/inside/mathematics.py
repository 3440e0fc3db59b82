"""Symbolic equality of two mathematical answers in LaTeX. The only module that imports math-verify, and with it sympy.

Parsing what a model wrote can take any time and memory, so this runs only in the sandbox: the runner sends the source of
this file as a program. A zygote that has rehearsed it makes a comparison cost milliseconds instead of a second.
"""

import logging
import re

EXAMPLES = (
    ("x^2+2x+1", "(x+1)^2", True),
    (r"\{1, 2\}", r"\{2, 1\}", True),
    ("[0,1)", "(0,1]", False),
    (r"\sqrt{8}", r"2\sqrt2", True),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", True),
    ("x=5", "5", True),
    (r"\frac{1}{3}", "0.3", False),
    (r"\text{Evelyn}", "Evelyn", True),
)


def equals_any(answer: str, targets: list[str]) -> bool | None:
    """Whether the answer equals one of the targets; None if the library is not installed."""
    try:
        return any(same(answer, target) for target in targets)
    except ModuleNotFoundError:
        return None


def same(answer: str, target: str) -> bool:
    """Whether the answer equals the target as mathematics, or as a text without spaces and markup."""
    if _plain(answer) == _plain(target):
        return True
    from math_verify import LatexExtractionConfig, parse, verify

    # Never the library's plain expressions: it has sympy evaluate those as Python.
    config = [LatexExtractionConfig()]
    wanted, given = (
        parse(f"\\boxed{{{text}}}", extraction_config=config, fallback_mode="no_fallback", parsing_timeout=None)
        for text in (target, answer)
    )
    return bool(wanted and given) and verify(wanted, given, timeout_seconds=None) is True


def rehearse() -> None:
    """Imports and specializes what comparisons need. Raises `ImportError` if the library is not installed or not sound."""
    logging.disable()  # it warns of every comparison without a time limit of its own
    for answer, target, equal in EXAMPLES:
        if same(answer, target) is not equal:
            raise ImportError(f"math-verify takes {answer} for {'different from' if equal else 'equal to'} {target}")


def _plain(text: str) -> str:
    text = re.sub(r"\\(?:text|textbf|mathrm|mbox)\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\(?:left|right|displaystyle|[!,;: ])|[$\s]", "", text)
    return text.replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac").rstrip(".").strip()
