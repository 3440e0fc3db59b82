"""Can a program notice that it is the body of a function, or that its standard input is a stand-in? See `agreement`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from runner.benchmarks.agreement_names import SCOPES, Names, own_scope
from runner.benchmarks.agreement_words import harmless_words

SYS_USES = frozenset(["setrecursionlimit", "getrecursionlimit", "maxsize", "exit", "float_info", "set_int_max_str_digits"])
REPEATED = (*SCOPES, ast.For, ast.While)


def is_wrappable(source: str, tree: ast.Module, nodes: list[ast.AST]) -> bool:
    """The same output for every input, as a module of its own or wrapped."""
    if "class Solution" in source or not any(not isinstance(node, (ast.Import, ast.ImportFrom)) for node in tree.body):
        return False
    main = _main_guard(tree)
    if main is not None:
        hidden = set(map(id, ast.walk(main.test)))
        nodes = [node for node in nodes if id(node) not in hidden]
    if not harmless_words(nodes) or not all(map(_prints_back, nodes)) or not all(map(_is_plain_class, nodes)):
        return False
    parents = {id(child): node for node in nodes for child in ast.iter_child_nodes(node)}
    names = Names(tree)
    return names.imports_come_first() and names.known_are_bound_before_use() and _reads_plainly(tree, nodes, parents, names)


def _main_guard(tree: ast.Module) -> ast.If | None:
    """The closing `if __name__ == '__main__'`, which both ways run; elsewhere only one does."""
    last = tree.body[-1]
    if isinstance(last, ast.If) and not last.orelse and ast.unparse(last.test) == "__name__ == '__main__'":
        return last
    return None


def _prints_back(node: ast.AST) -> bool:
    """Texts in formatted strings are what printing a tree may fail on."""
    if not isinstance(node, ast.FormattedValue):
        return True
    inside = [part for part in ast.walk(node.value) if isinstance(part, (ast.Constant, ast.JoinedStr))]
    return not any(isinstance(part, ast.JoinedStr) for part in inside) and not any(
        isinstance(part.value, str) and (not part.value.isprintable() or set(part.value) & set("\\'\""))
        for part in inside
        if isinstance(part, ast.Constant)
    )


def _is_plain_class(node: ast.AST) -> bool:
    """A class body that binds and reads the same name reads it elsewhere when it stands in a function."""
    if not isinstance(node, ast.ClassDef):
        return True
    inside = list(own_scope(node.body))
    stored = {each.id for each in inside if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
    stored |= {each.name for each in inside if isinstance(each, (ast.FunctionDef, ast.ClassDef))}
    return not any(isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.id in stored for each in inside)


def _reads_plainly(tree: ast.Module, nodes: list[ast.AST], parents: dict[int, ast.AST], names: Names) -> bool:
    """`input` and `readline` read as always. `read` gives everything: it must be the only one, and happen once."""
    whole: list[ast.AST] = []
    by_line = bool(names.reads.get("input")) and not names.is_own("input")
    for node in nodes:
        if not isinstance(node, ast.Name) or node.id != "sys" or not isinstance(node.ctx, ast.Load):
            continue
        use = parents.get(id(node))
        if not isinstance(use, ast.Attribute):
            return False
        method = parents.get(id(use))
        if isinstance(method, ast.Attribute) and use.attr == "stdin" and method.attr == "buffer":
            method = parents.get(id(method))
            called = "read" if isinstance(method, ast.Attribute) and method.attr == "read" else ""
        else:
            called = method.attr if isinstance(method, ast.Attribute) and method.value is use else ""
        if use.attr == "stdin" and called == "read" and method is not None:
            call = _the_call(method, nodes, parents) if not whole else None
            if call is None:
                return False
            whole.append(call)
        elif use.attr == "stdin" and called == "readline":
            by_line = True
        elif not (use.attr in SYS_USES or use.attr == "stderr" or (use.attr == "stdout" and called in ("write", "flush"))):
            return False
    return not whole or (not by_line and _happens_once(whole[0], tree, nodes, parents))


def _the_call(method: ast.AST, nodes: list[ast.AST], parents: dict[int, ast.AST]) -> ast.AST | None:
    """The one call of `sys.stdin.read`, there or by a name that is bound to it and used just once."""
    parent = parents.get(id(method))
    if _is_bare_call(parent, method):
        return parent
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or not isinstance(parent.targets[0], ast.Name):
        return None
    name = parent.targets[0].id
    uses = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
    reads = [node for node in uses if isinstance(node.ctx, ast.Load)]
    if len(uses) != 2 or len(reads) != 1 or any(isinstance(node, ast.arg) and node.arg == name for node in nodes):
        return None
    call = parents.get(id(reads[0]))
    around = [each for each in _around(parent, parents) if isinstance(each, REPEATED)]
    if not _is_bare_call(call, reads[0]) or [e for e in _around(reads[0], parents) if isinstance(e, REPEATED)] != around:
        return None
    return call


def _is_bare_call(call: ast.AST | None, function: ast.AST | None) -> bool:
    return isinstance(call, ast.Call) and call.func is function and not call.args and not call.keywords


def _happens_once(node: ast.AST, tree: ast.Module, nodes: list[ast.AST], parents: dict[int, ast.AST]) -> bool:
    """Not in a loop, and in no function but one of the module that is called once, outside of any."""
    around = [each for each in _around(node, parents) if isinstance(each, REPEATED)]
    if not around:
        return True
    if len(around) > 1 or not isinstance(around[0], ast.FunctionDef) or around[0] not in tree.body:
        return False
    function = around[0]
    if function.decorator_list or _is_generator(function):
        return False
    uses = [each for each in nodes if isinstance(each, ast.Name) and each.id == function.name]
    if len(uses) > 1 or sum(isinstance(each, ast.FunctionDef) and each.name == function.name for each in nodes) != 1:
        return False
    if not uses:
        return True
    call = parents.get(id(uses[0]))
    return (
        isinstance(call, ast.Call)
        and call.func is uses[0]
        and not any(isinstance(each, REPEATED) for each in _around(call, parents))
    )


def _is_generator(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(function))


def _around(node: ast.AST, parents: dict[int, ast.AST]) -> Iterator[ast.AST]:
    while (node := parents.get(id(node))) is not None:  # type: ignore[assignment]
        yield node
