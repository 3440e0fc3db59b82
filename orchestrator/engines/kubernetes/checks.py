"""What the engine needs of a cluster, and whether it has it: rights, network policy, image, address. For `prepare` and the
doctor.

The functions decide and word; the caller asks the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.engines.engine import LABEL_RUN

NETWORKING = "networking.k8s.io"


@dataclass(frozen=True)
class Right:
    """One verb on one kind of object that our account must or may have."""

    verb: str
    resource: str
    why: str
    subresource: str = ""
    group: str = ""
    needed: bool = True
    cluster: bool = False
    """Not of the runners' namespace, but of the whole cluster."""

    @property
    def name(self) -> str:
        kind = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{self.verb} {kind}"

    def attributes(self, namespace: str) -> dict[str, str]:
        """For a SelfSubjectAccessReview."""
        asked = {"verb": self.verb, "resource": self.resource, "group": self.group, "subresource": self.subresource}
        return asked if self.cluster else asked | {"namespace": namespace}


RIGHTS: tuple[Right, ...] = (
    Right("create", "pods", "to start runners"),
    Right("get", "pods", "to see how a runner is"),
    Right("list", "pods", "to see which runners there are"),
    Right("watch", "pods", "to hear at once when a runner ends"),
    Right("patch", "pods", "to stop a runner so that its log stays"),
    Right("delete", "pods", "to remove runners that have ended"),
    Right("get", "pods", "to read a runner's log", subresource="log"),
    Right("create", "secrets", "to hand each runner its token"),
    Right("create", "configmaps", "to make the object that owns all runners"),
    Right("get", "configmaps", "to find the object that owns all runners"),
    Right("delete", "configmaps", "to leave nothing behind when the service is removed", needed=False),
    Right("list", "resourcequotas", "to know how many runs fit", needed=False),
    Right("list", "networkpolicies", "to say which policy is missing", group=NETWORKING, needed=False),
    Right("list", "nodes", "to know how many runs fit, and to show the machines", needed=False, cluster=True),
)
"""Every right that the engine uses. The shipped role has the needed ones and those optional ones that are namespaced."""

FORBIDDEN: tuple[Right, ...] = (
    Right("get", "secrets", "a token that can be read can be stolen"),
    Right("list", "secrets", "a token that can be read can be stolen"),
    Right("create", "pods", "a program could be started in any runner", subresource="exec"),
    Right("create", "pods", "a program could talk to any runner", subresource="attach"),
    Right("get", "nodes", "the machines themselves could be controlled", subresource="proxy", cluster=True),
)
"""Rights that the account should not have."""


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check. `ok` is None for something that is optional and missing, or that could not be found out."""

    name: str
    ok: bool | None
    sentence: str


def check_rights(may: Callable[[dict[str, str]], bool], namespace: str) -> list[CheckResult]:
    """Asks for every right. `may` answers for the attributes of one."""
    results = []
    for right in RIGHTS:
        allowed = may(right.attributes(namespace))
        where = "in the cluster" if right.cluster else f"in namespace {namespace}"
        words = f"may {right.name} {where}" if allowed else f"may not {right.name} {where}, {right.why}"
        results.append(
            CheckResult(f"right to {right.name}", True if allowed else None if not right.needed else False, words)
        )
    for right in FORBIDDEN:
        if may(right.attributes(namespace)):
            words = f"may {right.name}, which it does not need: {right.why}"
            results.append(CheckResult(f"no right to {right.name}", None, words))
    return results


def missing_rights(results: Sequence[CheckResult]) -> str | None:
    """One sentence if a needed right is missing, or None."""
    missing = [result.name.removeprefix("right to ") for result in results if result.ok is False]
    if not missing:
        return None
    return f"The account may not {', '.join(missing)}: apply the role of deploy/kubernetes, then restart or wait."


def check_policy_object(policies: Sequence[Mapping[str, Any]]) -> CheckResult:
    """Whether a policy selects the runners and restricts both directions. Whether it is enforced, only the probe knows."""
    name = "network policy"
    for policy in policies:
        spec = policy.get("spec") or {}
        if selects_runners(spec.get("podSelector") or {}) and {"Ingress", "Egress"} <= set(spec.get("policyTypes") or []):
            return CheckResult(name, True, f"policy {policy['metadata']['name']} restricts what runners reach")
    return CheckResult(
        name, False, "no network policy restricts the runners' pods in both directions: apply deploy/kubernetes"
    )


def selects_runners(selector: Mapping[str, Any]) -> bool:
    """Whether a pod selector matches every runner: an empty one, or one that asks for nothing but a run's label."""
    if selector.get("matchLabels"):
        return False
    return all(
        expression.get("key") == LABEL_RUN and expression.get("operator") == "Exists"
        for expression in selector.get("matchExpressions") or []
    )
