"""Whether an answer follows verifiable instructions, by the rules that IFEval's authors published.

It runs only in the sandbox: searches are those of the published rules, which are not all linear in the text, and languages
are recognised by langdetect, which only this module imports. Two rules differ, because their data cannot be installed from a
package: sentences and words are divided by rules of our own instead of NLTK's trained model.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

Check = Callable[..., bool]
CHOICES = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_ABBREVIATIONS = """
a.m adm apr assn aug ave bros capt cf co col corp dec dept dr e.g esq etc feb gen gov hon i.e inc jan jr lt ltd maj mr mrs ms
mt nov oct p.m ph.d pp prof pres rep rev sen sept sgt sr st u.k u.n u.s univ v vol vs
"""
ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())
SENTENCE_END = re.compile(r"(\S*?)([.!?]+)[\"')\]”’]*(?=\s|$)")


def followed(answer: str, instructions: list[list[Any]], loose: bool) -> list[bool] | None:
    """For each instruction (its name and arguments) whether it is followed; None if langdetect is not installed.

    Loosely, an answer may have a first or last line too many, and asterisks of Markdown.
    """
    forms = _loose_forms(answer) if loose else [answer]
    try:
        return [any(form.strip() and CHECKS[name](form, **said) for form in forms) for name, said in instructions]
    except ModuleNotFoundError:
        return None


def _loose_forms(answer: str) -> list[str]:
    lines = answer.split("\n")
    parts = [lines, lines[1:], lines[:-1], lines[1:-1]]
    forms = ["\n".join(part).strip() if part is not lines else answer for part in parts]
    return [*forms, *(form.replace("*", "") for form in forms)]


def _compare(count: int, relation: str, wanted: float) -> bool:
    return count < wanted if relation == "less than" else count >= wanted


def _is_language(answer: str, language: str) -> bool:
    """A text without any letter counts as right, as published."""
    from langdetect import DetectorFactory, LangDetectException, detect

    DetectorFactory.seed = 0  # it draws at random otherwise
    try:
        return bool(detect(answer) == language)
    except LangDetectException:
        return True


def sentences(text: str) -> int:
    """The number of sentences: ends of `.`, `!` or `?` before white space that do not belong to an abbreviation.

    The number of a list's entry ends a sentence, as it does for NLTK.
    """
    count, at = 0, 0
    for end in SENTENCE_END.finditer(text):
        word = end[1].lstrip("\"'([“‘").lower()
        rest = text[end.end() :].lstrip()
        if end[2] == "." and rest and (word in ABBREVIATIONS or re.fullmatch(r"[a-z]", word)):
            continue
        if end[2].startswith("..") and rest[:1].islower():
            continue
        count, at = count + 1, end.end()
    return count + bool(text[at:].strip())


def words(text: str) -> list[str]:
    """Words and marks of punctuation, contractions in two parts; words with a hyphen are one."""
    text = re.sub(r"([?!,;:@#$%&(){}\[\]<>\"“”]|--+|\.\.\.)", r" \1 ", text)
    text = re.sub(r"(?i)('s|'m|'d|'ll|'re|'ve|n't)\b", r" \1", text)
    return text.split()


def _sections(answer: str, section_spliter: str, num_sections: float) -> bool:
    return len(re.split(rf"\s?{section_spliter.strip()}\s?\d+\s?", answer)) - 1 >= num_sections


def _paragraphs(answer: str, num_paragraphs: float) -> bool:
    parts = re.split(r"\s?\*\*\*\s?", answer)
    inner = parts[1:-1]
    if any(not part.strip() for part in inner):
        return False
    return sum(bool(part.strip()) for part in parts) == num_paragraphs


def _first_word(answer: str, num_paragraphs: float, nth_paragraph: float, first_word: str) -> bool:
    parts = answer.split("\n\n")
    filled = sum(bool(part.strip()) for part in parts)
    nth = int(nth_paragraph)
    if filled != num_paragraphs or nth > filled or not parts[nth - 1].strip():
        return False
    word = parts[nth - 1].split()[0].lstrip("'").lstrip('"')
    return re.split(r"[.,?!'\"]", word)[0].lower() == first_word.lower()


def _postscript(answer: str, postscript_marker: str) -> bool:
    marker = postscript_marker.strip()
    spelled = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}.get(marker, marker.lower())
    return re.search(rf"\s*{spelled}.*$", answer.lower(), re.MULTILINE) is not None


def _bullets(answer: str, num_bullets: float) -> bool:
    stars = re.findall(r"^\s*\*[^\*].*$", answer, re.MULTILINE)
    return len(stars) + len(re.findall(r"^\s*-.*$", answer, re.MULTILINE)) == num_bullets


def _highlights(answer: str, num_highlights: float) -> bool:
    single = [text for text in re.findall(r"\*[^\n\*]*\*", answer) if text.strip("*").strip()]
    double = [text for text in re.findall(r"\*\*[^\n\*]*\*\*", answer) if text[2:-2].strip()]
    return len(single) + len(double) >= num_highlights


def _json(answer: str) -> bool:
    answer = answer.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        answer = answer.removeprefix(fence)
    try:
        json.loads(answer.removesuffix("```").strip())
    except ValueError:
        return False
    return True


def _title(answer: str) -> bool:
    return any(title.lstrip("<").rstrip(">").strip() for title in re.findall(r"<<[^\n]+>>", answer))


def _two_responses(answer: str) -> bool:
    parts = answer.split("******")
    if any(not part.strip() for part in parts[1:-1]):
        return False
    filled = [part.strip() for part in parts if part.strip()]
    return len(filled) == 2 and filled[0] != filled[1]


def _quoted(answer: str) -> bool:
    answer = answer.strip()
    return len(answer) > 1 and answer[0] == '"' == answer[-1]


def _capital_words(answer: str, capital_frequency: float, capital_relation: str) -> bool:
    return _compare(sum(word.isupper() for word in words(answer)), capital_relation, capital_frequency)


def _letters(answer: str, letter: str, let_frequency: float, let_relation: str) -> bool:
    return _compare(Counter(answer.lower())[letter.strip().lower()], let_relation, let_frequency)


def _frequency(answer: str, keyword: str, frequency: float, relation: str) -> bool:
    return _compare(len(re.findall(keyword.strip(), answer, re.IGNORECASE)), relation, frequency)


CHECKS: dict[str, Check] = {
    "change_case:capital_word_frequency": _capital_words,
    "change_case:english_capital": lambda answer: answer.isupper() and _is_language(answer, "en"),
    "change_case:english_lowercase": lambda answer: answer.islower() and _is_language(answer, "en"),
    "combination:repeat_prompt": lambda answer, prompt_to_repeat: (
        answer.strip().lower().startswith(prompt_to_repeat.strip().lower())
    ),
    "combination:two_responses": _two_responses,
    "detectable_content:number_placeholders": lambda answer, num_placeholders: (
        len(re.findall(r"\[.*?\]", answer)) >= num_placeholders
    ),
    "detectable_content:postscript": _postscript,
    "detectable_format:constrained_response": lambda answer: any(choice in answer for choice in CHOICES),
    "detectable_format:json_format": _json,
    "detectable_format:multiple_sections": _sections,
    "detectable_format:number_bullet_lists": _bullets,
    "detectable_format:number_highlighted_sections": _highlights,
    "detectable_format:title": _title,
    "keywords:existence": lambda answer, keywords: all(re.search(word, answer, re.IGNORECASE) for word in keywords),
    "keywords:forbidden_words": lambda answer, forbidden_words: (
        not any(re.search(rf"\b{word}\b", answer, re.IGNORECASE) for word in forbidden_words)
    ),
    "keywords:frequency": _frequency,
    "keywords:letter_frequency": _letters,
    "language:response_language": _is_language,
    "length_constraints:nth_paragraph_first_word": _first_word,
    "length_constraints:number_paragraphs": _paragraphs,
    "length_constraints:number_sentences": lambda answer, num_sentences, relation: _compare(
        sentences(answer), relation, num_sentences
    ),
    "length_constraints:number_words": lambda answer, num_words, relation: _compare(
        len(re.findall(r"\w+", answer)), relation, num_words
    ),
    "punctuation:no_comma": lambda answer: "," not in answer,
    "startend:end_checker": lambda answer, end_phrase: (
        answer.strip().strip('"').lower().endswith(end_phrase.strip().lower())
    ),
    "startend:quotation": _quoted,
}


def rehearse() -> None:
    """Loads the profiles of languages. Raises `ImportError` if langdetect is not installed or not sound."""
    if not _is_language("This is a sentence in English, and it is not a short one.", "en"):
        raise ImportError("langdetect does not recognise English")
