"""Cuts texts to size: excerpts for reports, characters that databases refuse, events that were too large. Pure."""

from runner.contract.events import ItemResult, LogEvent, ProgressEvent

MARK = "\n[... {} more characters were cut here ...]"
EXCERPT_CHARS = 2_000
ANSWER_CHARS = 1_000_000
THINKING_CHARS = 200_000
SHORTEST = 100


def clean(text: str) -> str:
    """Removes NUL characters and lone surrogates, which UTF-8 or PostgreSQL cannot store."""
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-8", "replace").decode()
    return text


def cut(text: str, limit: int) -> str:
    """Returns the beginning of a text, with a mark if it was cut."""
    if len(text) <= limit:
        return clean(text)
    return clean(text[:limit]) + MARK.format(len(text) - limit)


def excerpt(text: str) -> str:
    return cut(text, EXCERPT_CHARS)


def trimmed(kind: str, body: bytes) -> bytes:
    """Returns the event with its longest texts cut to about half, down to a minimum; numbers and verdicts stay."""
    if kind == "log":
        log = LogEvent.model_validate_json(body)
        short = cut(log.message, max(len(log.message) // 2, SHORTEST))
        return log.model_copy(update={"message": short}).model_dump_json(exclude_none=True).encode()
    if kind != "progress":
        return body
    event = ProgressEvent.model_validate_json(body)
    smaller = event.model_copy(update={"item": _smaller(event.item)}).model_dump_json(exclude_none=True).encode()
    return smaller if len(smaller) < len(body) else body


def _smaller(item: ItemResult) -> ItemResult:
    texts = [item.detail, item.prompt, item.answer, item.code or ""]
    texts += [text for test in item.tests for text in (test.input, test.expected, test.got, test.stderr) if text]
    limit = max(max(map(len, texts)) // 2, SHORTEST)

    def shorter(text: str | None) -> str | None:
        return text if text is None else cut(text, limit)

    tests = [
        test.model_copy(update={name: shorter(getattr(test, name)) for name in ("input", "expected", "got", "stderr")})
        for test in item.tests
    ]
    own = {name: shorter(getattr(item, name)) for name in ("detail", "prompt", "answer", "code")}
    return item.model_copy(update={**own, "tests": tests})
