"""Does a class keep anything from one test to the next, or give back what is equal in one checker only? See `agreement`."""

from __future__ import annotations

import ast

from runner.benchmarks.agreement_words import harmless_words

EQUALS = frozenset(
    ["__eq__", "__ne__", "__bool__", "__len__", "__new__", "__class_getitem__", "__getattr__", "__getattribute__", "__del__"]
)
RETURNS = frozenset(
    ["Fraction", "Decimal", "complex", "UserList", "UserDict", "UserString", "ChainMap", "NormalDist", "array"]
)
"""Makers of values that equal plain ones there, and are no plain data here."""


def is_stateless(source: str, tree: ast.Module, nodes: list[ast.AST], entry: str) -> bool:
    """One object for all tests, or a new one for each: the results are the same."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Solution"]
    if len(classes) != 1 or "class Solution" not in source or not harmless_words(nodes):
        return False
    tops = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    if entry in tops or not all(map(_keeps_nothing, tree.body)):
        return False
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in RETURNS:
            return False
        if isinstance(node, ast.Attribute) and (node.attr in RETURNS or (_is_store(node) and _named(node.value) in tops)):
            return False
        if isinstance(node, ast.Constant) and isinstance(node.value, complex):
            return False
        if isinstance(node, (ast.Import, ast.ImportFrom)) and any(
            alias.name == "time" or alias.name in RETURNS or alias.asname for alias in node.names
        ):
            return False
    return _uses_itself_only_to_call(classes[0], entry)


def _keeps_nothing(node: ast.stmt) -> bool:
    """A statement of the module or of a class body that leaves nothing behind which a test could change."""
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass)):
        return True
    if isinstance(node, ast.FunctionDef):
        defaults = [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]
        return not node.decorator_list and all(map(_is_constant, defaults))
    if isinstance(node, ast.ClassDef):
        plain = all(_named(base) == "object" for base in node.bases) and not node.keywords and not node.decorator_list
        equal = any(isinstance(each, ast.FunctionDef) and each.name in EQUALS for each in node.body)
        return plain and not equal and all(map(_keeps_nothing, node.body))
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Name) for target in node.targets) and _is_constant(node.value)
    if isinstance(node, ast.Expr):
        call = node.value
        sets_limit = (
            isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "setrecursionlimit"
        )
        return isinstance(call, ast.Constant) or sets_limit
    return False


def _uses_itself_only_to_call(solution: ast.ClassDef, entry: str) -> bool:
    methods = {node.name for node in solution.body if isinstance(node, ast.FunctionDef)}
    constants = {
        t.id for node in solution.body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)
    }
    if entry not in methods or "__init__" in methods:
        return False
    for method in solution.body:
        if not isinstance(method, ast.FunctionDef):
            continue
        first = [*method.args.posonlyargs, *method.args.args][:1]
        if not first:
            return False
        own = first[0].arg
        allowed = {
            id(node.value)
            for node in ast.walk(method)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr in methods | constants
        }
        if any(isinstance(n, ast.Name) and n.id == own and id(n) not in allowed for n in ast.walk(method)):
            return False
    return True


def _is_constant(node: ast.expr) -> bool:
    parts = (ast.Constant, ast.Tuple, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.expr_context)
    return all(isinstance(part, parts) for part in ast.walk(node)) or _is_infinity(node)


def _is_infinity(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and _named(node.func) == "float"
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Constant)
        and not node.keywords
    )


def _is_store(node: ast.Attribute) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _named(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""
