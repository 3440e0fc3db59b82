"""Numbers as people write them."""

from decimal import Decimal, InvalidOperation

NOISE = str.maketrans("", "", ",$€£%\u202f\u00a0_ ")
MAX_CHARS = 100


def as_decimal(text: str) -> Decimal | None:
    """Reads a number with its thousands separators, currency sign or percent sign; None if it is none."""
    text = text.strip()
    if len(text) > MAX_CHARS:
        return None
    try:
        number = Decimal(text.translate(NOISE).replace("−", "-"))
    except InvalidOperation:
        return None
    return number if number.is_finite() and number.adjusted() < MAX_CHARS else None
