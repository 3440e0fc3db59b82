"""Where a program's module binds names and where they are read: both may mean another thing in a function (`agreement`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from runner.benchmarks.agreement_words import KNOWN

Place = tuple[int, int]
SCOPES = (ast.FunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def own_scope(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a scope, without what lies in the scopes inside it, but with their heads."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, SCOPES):
            waiting += ast.iter_child_nodes(node)
        elif isinstance(node, ast.FunctionDef):
            waiting += [*node.decorator_list, *node.args.defaults, *(each for each in node.args.kw_defaults if each)]
        elif isinstance(node, ast.ClassDef):
            waiting += [*node.decorator_list, *node.bases]


def _start(node: ast.AST) -> Place:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def _end(node: ast.AST) -> Place:
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]


class Names:
    """Where names are bound by the module's own statements, and where they are read."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self.reads: dict[str, list[Place]] = {}
        self._collect(tree, frozenset())

    def _collect(self, node: ast.AST, hidden: frozenset[str]) -> None:
        """Reads of names that no function or comprehension around them has as its own."""
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and node.id not in hidden:
                self.reads.setdefault(node.id, []).append(_start(node))
            return
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id not in hidden:
            self.reads.setdefault(node.target.id, []).append(_start(node))
        inside = hidden
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            for outer in (*node.args.defaults, *(each for each in node.args.kw_defaults if each)):
                self._collect(outer, hidden)
            inside = hidden | _locals(node)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            self._collect(node.generators[0].iter, hidden)
            targets = (part for each in node.generators for part in ast.walk(each.target))
            inside = hidden | {part.id for part in targets if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        for child in ast.iter_child_nodes(node):
            self._collect(child, inside)

    def imports_come_first(self) -> bool:
        """Imports are moved to the top: nothing may have been read or bound before them."""
        others = [node for node in self._tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
        for node in self._tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = {alias.asname or alias.name for alias in node.names}
                if "*" in names and _start(others[0]) < _start(node):
                    return False
                if any(place < _start(node) for name in names for place in self.reads.get(name, [])):
                    return False
        return True

    def known_are_bound_before_use(self) -> bool:
        """A name that exists anyway, like `sum` or `count`, is a local one everywhere once the module binds it."""
        seen: set[str] = set()
        return self._suite(self._tree.body, seen)

    def is_own(self, name: str) -> bool:
        return name in self._bound

    def _suite(self, suite: Sequence[ast.stmt], seen: set[str]) -> bool:
        span = (_start(suite[0]), _end(suite[-1])) if suite else ((0, 0), (0, 0))
        for statement in suite:
            for name, since, until in _bindings(statement):
                if name in seen:
                    continue
                seen.add(name)
                low, high = max(since, span[0]), min(until or span[1], span[1])
                if name in KNOWN and not all(low <= place <= high for place in self.reads.get(name, [])):
                    return False
            if any(name in KNOWN and name not in seen for name in _unclear(statement)):
                return False
            for inner in _inner_suites(statement):
                if not self._suite(inner, seen):
                    return False
        return True

    @property
    def _bound(self) -> set[str]:
        scope = own_scope(self._tree.body)
        return {node.id for node in scope if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}


def _locals(function: ast.FunctionDef | ast.Lambda) -> set[str]:
    """The names that are a function's own."""
    names = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    if isinstance(function, ast.Lambda):
        return names
    outer = set()
    for node in own_scope(function.body):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.Nonlocal):
            outer |= set(node.names)
    return names - outer


def _bindings(statement: ast.stmt) -> Iterator[tuple[str, Place, Place | None]]:
    """Names that a statement surely binds; from where on they are so, and until where (None: to the end of its suite)."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name, _start(statement), None
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id, _end(statement), None
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None and isinstance(statement.target, ast.Name):
        yield statement.target.id, _end(statement), None
    elif isinstance(statement, ast.For):
        for node in ast.walk(statement.target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id, _start(statement.body[0]), _end(statement.body[-1])


def _unclear(statement: ast.stmt) -> Iterator[str]:
    """Names that a statement itself binds in another way."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return
    inner = {id(node) for suite in _inner_suites(statement) for node in suite}
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        if isinstance(node, (ast.Import, ast.ImportFrom)) and node is not statement:
            yield from (alias.asname or alias.name for alias in node.names)
        if isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            waiting += [
                child for child in ast.iter_child_nodes(node) if id(child) not in inner and not _is_comprehension(child)
            ]


def _is_comprehension(node: ast.AST) -> bool:
    """Its variables are its own; an assignment expression inside is not looked for, so there must be none."""
    kinds = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return isinstance(node, kinds) and not any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))


def _inner_suites(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return
    for field in ("body", "orelse", "finalbody"):
        suite = getattr(statement, field, None)
        if isinstance(suite, list) and suite:
            yield suite
    for handler in getattr(statement, "handlers", ()):
        yield handler.body
