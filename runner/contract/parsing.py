"""Parses Python source written by a model or a user, at a cost proportional to its length. Standard library only.

The interpreter's parser stores every prefix of a dotted name in an import: 100 kB of `import a.a.a...` takes gigabytes.
"""

import ast
import re
import warnings

MOST_CHARS = 100_000
MOST_PARTS = 500
"""The most parts that a dotted name may have."""
_BLANKS = re.compile(r"[ \t\f]+|\\\r?\n")
_NAMES = re.compile(r"[\w.]+")


def parse(source: str) -> ast.Module:
    """Returns the syntax tree; raises `SyntaxError` if the source is invalid or exceeds a limit."""
    if len(source) > MOST_CHARS:
        raise SyntaxError(f"the source is longer than the limit of {MOST_CHARS} characters")
    if any(name[0].count(".") > MOST_PARTS for name in _NAMES.finditer(_BLANKS.sub("", source))):
        raise SyntaxError(f"a name has more parts than the limit of {MOST_PARTS}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in old sources
            return ast.parse(source)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(f"{type(error).__name__} at a limit of the parser") from None
