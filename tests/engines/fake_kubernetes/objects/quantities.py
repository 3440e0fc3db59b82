"""Amounts as Kubernetes writes them. Pure."""

from __future__ import annotations

import math
from fractions import Fraction

from tests.engines.fake_kubernetes.objects.answers import Json

_UNITS = {
    "": Fraction(1),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
}


def amount(text: str | float) -> Fraction:
    """Cores, bytes or pieces."""
    whole = str(text)
    digits = whole.rstrip("mkMGTKi")
    return Fraction(digits) * _UNITS[whole[len(digits) :]]


def written(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{math.ceil(value * 1000)}m"


def requests_of(spec: Json, kind: str = "requests") -> dict[str, Fraction]:
    """What a pod asks for: the sum of its containers, or its largest init container where that is more."""
    totals: dict[str, Fraction] = {}
    for container in spec.get("containers") or []:
        resources = container.get("resources") or {}
        for name, text in (resources.get(kind) or {}).items():
            totals[name] = totals.get(name, Fraction(0)) + amount(text)
    for container in spec.get("initContainers") or []:
        for name, text in ((container.get("resources") or {}).get(kind) or {}).items():
            totals[name] = max(totals.get(name, Fraction(0)), amount(text))
    return totals


def canonical(text: str | float) -> str:
    """As the API server writes it back: the largest unit that leaves a whole number, binary if it came so."""
    value = amount(text)
    units = ["Ki", "Mi", "Gi", "Ti"] if str(text).endswith("i") else ["m", "", "k", "M", "G", "T"]
    fitting = [unit for unit in units if (value / _UNITS[unit]).denominator == 1]
    unit = fitting[-1] if fitting and value else ""
    return f"{value / _UNITS[unit]}{unit}"
