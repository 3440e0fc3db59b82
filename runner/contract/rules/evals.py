"""Static checks of an eval: syntax, imports, the function. Pure and without dependencies; both sides use it.

The list of allowed imports is a check of quality: an eval that needs more is not the kind of function that was asked for.
It is not a security boundary; the sandbox is.
"""

import ast
import warnings

from runner.contract.parsing import parse

ENTRY = "evaluate"
_ALLOWED = """ast base64 bisect calendar collections copy dataclasses datetime decimal difflib enum fractions functools
hashlib heapq html itertools json keyword math numbers operator re statistics string textwrap typing unicodedata
urllib.parse __future__"""
ALLOWED = frozenset(_ALLOWED.split())
_FORBIDDEN = "__import__ breakpoint compile eval exec exit globals input locals memoryview open quit vars __builtins__"
FORBIDDEN_NAMES = frozenset(_FORBIDDEN.split())
MAX_CHARS = 50_000


def problem_of(code: str) -> str | None:
    """Returns why the code cannot be an eval, as a sentence for the model that wrote it; None if nothing is wrong."""
    if len(code) > MAX_CHARS:
        return f"the code has {len(code)} characters, at most {MAX_CHARS} are possible"
    if "\x00" in code:
        return "the code has a NUL character"
    try:
        tree = parse(code)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(code, "eval.py", "exec", dont_inherit=True)
    except SyntaxError as error:
        line = f" (line {error.lineno})" if error.lineno else ""
        return f"it is not valid Python: {error.msg}{line}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"it is not valid Python: {type(error).__name__}"
    try:
        return _imports(tree) or _names(tree) or _entry(tree)
    except RecursionError:
        return "the code is nested too deeply"


def _imports(tree: ast.Module) -> str | None:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                return "relative imports are not possible: the eval is one module"
            names = [node.module or ""]
        for name in names:
            if name not in ALLOWED and name.split(".")[0] not in ALLOWED:
                allowed = ", ".join(sorted(ALLOWED - {"__future__"}))
                return f"line {node.lineno} imports {name}, which is not allowed; allowed are {allowed}"  # type: ignore[attr-defined]
    return None


def _names(tree: ast.Module) -> str | None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in FORBIDDEN_NAMES:
            return f"line {node.lineno} uses {node.id}, which an eval does not need and may not use"
        if isinstance(node, ast.Attribute) and node.attr.startswith("__") and node.attr != "__name__":
            return f"line {node.lineno} uses the attribute {node.attr}, which an eval does not need and may not use"
    return None


def _entry(tree: ast.Module) -> str | None:
    function: ast.stmt | None = None
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name == ENTRY:
            function = statement
    if function is None:
        return f"it defines no function {ENTRY}(trace) at the top level"
    if isinstance(function, ast.AsyncFunctionDef):
        return f"{ENTRY} is async; it must be an ordinary function"
    assert isinstance(function, ast.FunctionDef)
    spec = function.args
    positional = len(spec.posonlyargs) + len(spec.args)
    required = positional - len(spec.defaults) + sum(default is None for default in spec.kw_defaults)
    if required > 1 or (positional == 0 and spec.vararg is None):
        return f"{ENTRY} must take one argument, the trace"
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function)):
        return f"{ENTRY} is a generator; it must return the result"
    return None
