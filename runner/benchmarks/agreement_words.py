"""Which modules and names of a program the two ways of running it treat alike; see `agreement`. Pure."""

from __future__ import annotations

import ast
import builtins
import io
import random
import sys

from runner.sandbox.inside.prelude import namespace

_MODULES = """
sys math collections heapq bisect itertools functools string re operator typing copy array queue json time
"""
MODULES = frozenset(_MODULES.split())
"""Without state that a program would leave behind, and without ways to the real standard input."""
_SYS_NAMES = """
exit maxsize setrecursionlimit getrecursionlimit float_info set_int_max_str_digits intern getsizeof
"""
SYS_NAMES = frozenset(_SYS_NAMES.split())
_DUNDERS = """
__next__ __getitem__ __len__ __init__ __lt__ __contains__ __iter__ __add__ __setitem__
"""
DUNDERS = frozenset(_DUNDERS.split())
_FORBIDDEN = """
open quit help exec eval compile globals locals vars dir breakpoint stdin stdout stderr setattr delattr super type
copyright credits license memoryview
"""
FORBIDDEN = frozenset(_FORBIDDEN.split())
"""Never harmless, whoever has bound them."""
UNLESS_BOUND = frozenset(
    [name for name in dir(sys) if name not in SYS_NAMES]
    + [name for name in (*dir(io), *dir(random)) if not hasattr(builtins, name) or name == "open"]
)
"""What the checker's imports give away of those modules, where the program has no such name of its own."""
KNOWN = frozenset([*namespace(), *dir(builtins), "stdin", "stdout", "stderr"])
"""Names that a program finds without binding them."""
MODULE_NAMES = frozenset(name for name, value in namespace().items() if isinstance(value, type(sys)))


def imported(nodes: list[ast.AST]) -> set[str] | None:
    """The names that imports bind; None if an import is not known to be harmless."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            if any(alias.name not in MODULES or (alias.name == "sys" and alias.asname) for alias in node.names):
                return None
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module not in MODULES:
                return None
            if any(alias.name == "*" for alias in node.names) and node.module not in MODULE_NAMES:
                return None
            if node.module == "sys" and any(alias.name not in SYS_NAMES | FORBIDDEN or alias.asname for alias in node.names):
                return None
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def bound(nodes: list[ast.AST]) -> set[str]:
    """All names that the program binds somewhere."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return names


def harmless_words(nodes: list[ast.AST]) -> bool:
    """No name and no attribute that leads out of the program, and modules are only looked into."""
    modules = imported(nodes)
    if modules is None:
        return False
    own = bound(nodes)
    looked_into = {id(node.value) for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    for node in nodes:
        if isinstance(node, (ast.Global, ast.AsyncFunctionDef, ast.Await, ast.Match, ast.AsyncFor, ast.AsyncWith)):
            return False
        if isinstance(node, ast.Attribute) and node.attr.startswith("__") and node.attr not in DUNDERS:
            return False
        if not isinstance(node, ast.Name):
            continue
        name = node.id
        if name in FORBIDDEN or (name.startswith("__") and name.endswith("__") and name not in ("__", "___", "__slots__")):
            return False
        if isinstance(node.ctx, ast.Load) and name not in own:
            if name in UNLESS_BOUND and name not in modules and name not in MODULE_NAMES:
                return False
            if name in MODULE_NAMES and (id(node) not in looked_into or name not in MODULES):
                return False
        elif name in own and name in modules:
            return False
    return True
