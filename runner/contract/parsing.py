"""Parsing Python source that a model or a user wrote, at a cost that stays in proportion to its length. A leaf.

The interpreter's parser keeps every prefix of a dotted name in an import: `import a.a.a...` of 100 kB takes gigabytes.
"""

import ast
import re
import warnings

MOST_CHARS = 100_000
MOST_PARTS = 500
"""Of a dotted name."""
_BLANKS = re.compile(r"[ \t\f]+|\\\r?\n")
_NAMES = re.compile(r"[\w.]+")


def parse(source: str) -> ast.Module:
    """The syntax tree; any source that has none, or none within bounds, raises `SyntaxError`."""
    if len(source) > MOST_CHARS:
        raise SyntaxError(f"the source is longer than the limit of {MOST_CHARS} characters")
    if any(name[0].count(".") > MOST_PARTS for name in _NAMES.finditer(_BLANKS.sub("", source))):
        raise SyntaxError(f"a name has more parts than the limit of {MOST_PARTS}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the escapes of old sources
            return ast.parse(source)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(f"{type(error).__name__} at a limit of the parser") from None
