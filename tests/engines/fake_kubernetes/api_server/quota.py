"""ResourceQuotas: refuse a pod that would exceed one, and keep their status true."""

from __future__ import annotations

from fractions import Fraction

from tests.engines.fake_kubernetes.objects import answers
from tests.engines.fake_kubernetes.objects.answers import Json
from tests.engines.fake_kubernetes.objects.quantities import amount, requests_of, written
from tests.engines.fake_kubernetes.objects.resources import PODS, QUOTAS
from tests.engines.fake_kubernetes.objects.store import Store

Amounts = dict[str, Fraction]


def _usage(pod: Json) -> Amounts:
    asked, limits = requests_of(pod["spec"]), requests_of(pod["spec"], "limits")
    usage = {"pods": Fraction(1), "count/pods": Fraction(1)}
    for name in ("cpu", "memory", "ephemeral-storage"):
        usage[name] = usage[f"requests.{name}"] = asked.get(name, Fraction(0))
        usage[f"limits.{name}"] = limits.get(name, Fraction(0))
    return usage


def _used(store: Store, namespace: str) -> Amounts:
    """Ended pods do not count, even before they are removed."""
    totals: Amounts = {}
    for pod in store.all(PODS, namespace):
        if pod["status"]["phase"] not in ("Failed", "Succeeded"):
            for name, value in _usage(pod).items():
                totals[name] = totals.get(name, Fraction(0)) + value
    return totals


def _listed(amounts: Amounts) -> str:
    return ",".join(f"{name}={written(value)}" for name, value in sorted(amounts.items()))


def check_quota(store: Store, pod: Json) -> None:
    meta = pod["metadata"]
    asked, used = _usage(pod), _used(store, meta["namespace"])
    for quota in store.all(QUOTAS, meta["namespace"]):
        hard = {name: amount(text) for name, text in quota["spec"]["hard"].items() if name in asked}
        unsaid = sorted(name for name in hard if not asked[name])
        if unsaid:
            why = f"failed quota: {quota['metadata']['name']}: must specify {','.join(unsaid)}"
            raise answers.forbidden("pods", meta["name"], why)
        over = [name for name, limit in hard.items() if used.get(name, Fraction(0)) + asked[name] > limit]
        if over:
            requested = _listed({name: asked[name] for name in over})
            in_use = _listed({name: used.get(name, Fraction(0)) for name in over})
            limited = _listed({name: hard[name] for name in over})
            why = f"exceeded quota: {quota['metadata']['name']}, requested: {requested}, used: {in_use}, limited: {limited}"
            raise answers.forbidden("pods", meta["name"], why)


def count_quotas(store: Store) -> None:
    """What the quota controller writes into each quota's status."""
    for quota in store.all(QUOTAS):
        hard = quota["spec"]["hard"]
        used = _used(store, quota["metadata"]["namespace"])
        quota["status"] = {"hard": hard, "used": {name: written(used.get(name, Fraction(0))) for name in hard}}
        store.update(QUOTAS, quota)
