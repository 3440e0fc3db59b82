"""Programs on which LiveCodeBench's own checker cannot differ from a real process, told by their text. Pure.

That checker wraps a program on standard input into one function and gives it a stand-in for `sys.stdin`; it asks one object
of a class for all tests. Most programs cannot notice. Where that follows from the syntax tree, the strict verdict is the
parity verdict and nothing is run a second time. Everything that is not plainly harmless counts as noticing: "no" costs some
milliseconds, a wrong "yes" a wrong verdict. Resources are left aside: time, memory, a dozen frames of recursion.
"""

from __future__ import annotations

import ast

from runner.benchmarks.agreement_calls import is_stateless
from runner.benchmarks.agreement_stdin import is_wrappable
from runner.contract import Outcome
from runner.parsing import parse

LONGEST = 20_000
DEEPEST = 60
SETTLED = frozenset({Outcome.PASSED, Outcome.WRONG_ANSWER, Outcome.RUNTIME_ERROR})


def must_agree(source: str, entry: str | None, outcome: Outcome) -> bool:
    """Does this strict outcome settle the official one? `entry` is the method that the tests call, if they call one."""
    if outcome not in SETTLED or len(source) > LONGEST:
        return False
    try:
        tree = parse(source)
    except SyntaxError as error:
        return outcome is Outcome.RUNTIME_ERROR and "limit" not in error.msg  # that checker allows longer numbers
    nodes = _nodes(tree)
    if nodes is None or (outcome is Outcome.RUNTIME_ERROR and _may_fail_otherwise(nodes)):
        return False
    return is_wrappable(source, tree, nodes) if entry is None else is_stateless(source, tree, nodes, entry)


def _nodes(tree: ast.Module) -> list[ast.AST] | None:
    """All nodes, level by level; None where the tree is so deep that the other checker's printing of it may fail."""
    found: list[ast.AST] = []
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST):
        found += level
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return found
    return None


def _may_fail_otherwise(nodes: list[ast.AST]) -> bool:
    """An exit status is an error only here; some texts are an error as a module and none inside a function."""
    kinds = (ast.Nonlocal, ast.Return, ast.Yield, ast.YieldFrom)
    inside = {
        id(child)
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.Lambda))
        for child in ast.walk(node)
        if isinstance(child, kinds)
    }
    return any(
        isinstance(node, ast.Nonlocal)
        or (isinstance(node, kinds) and id(node) not in inside)
        or (isinstance(node, ast.Name) and node.id in ("exit", "SystemExit"))
        or (isinstance(node, ast.Attribute) and node.attr == "exit")
        for node in nodes
    )
