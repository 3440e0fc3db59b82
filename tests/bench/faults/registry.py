"""All faults, in order: the lists `FAULTS` of the modules beside this one."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from tests.bench.faults.fault import Fault

NOT_FAULTS = {"__main__", "registry", "fault", "scene", "invariants", "carrying", "results", "watching", "kinds"}


def _all() -> tuple[Fault, ...]:
    names = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]) if module.name not in NOT_FAULTS]
    modules = [importlib.import_module(f"tests.bench.faults.{name}") for name in names]
    found: list[Fault] = [fault for module in modules for fault in getattr(module, "FAULTS", [])]
    return tuple(sorted(found, key=lambda fault: int(fault.code[1:])))


ALL = _all()


def chosen(words: list[str]) -> list[Fault]:
    """By code ("F9") or whole key ("F9 engine killed -9")."""
    if unknown := [word for word in words if not any(word in (fault.code, fault.key) for fault in ALL)]:
        raise SystemExit(f"no such fault: {', '.join(unknown)}; --list names them")
    return [fault for fault in ALL if not words or fault.code in words or fault.key in words]
