"""Who asks, and what they may do: tokens, rights, and `SelfSubjectAccessReview`."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.engines.fake_kubernetes.objects.answers import Json, Refusal, unauthorized

USER = "system:serviceaccount:benchyard:benchyard"


@dataclass(frozen=True)
class Right:
    """Verbs on a resource ("pods", "pods/log", "networkpolicies.networking.k8s.io") in a namespace; None: in all."""

    resource: str
    verbs: frozenset[str]
    namespace: str | None = None


def right(resource: str, *verbs: str, namespace: str | None = None) -> Right:
    return Right(resource, frozenset(verbs), namespace)


@dataclass
class Access:
    token: str = "right-token"
    rights: list[Right] | None = None
    """None: everything is allowed."""
    denied: set[tuple[str, str]] = field(default_factory=set)
    """Pairs of verb and resource that are refused in any case."""

    def authenticate(self, header: str | None) -> None:
        if header != f"Bearer {self.token}":
            raise unauthorized()

    def allowed(self, verb: str, resource: str, namespace: str | None) -> bool:
        if (verb, resource) in self.denied:
            return False
        if self.rights is None:
            return True
        return any(
            one.resource in (resource, "*")
            and (verb in one.verbs or "*" in one.verbs)
            and one.namespace in (None, namespace)
            for one in self.rights
        )

    def authorise(self, verb: str, resource: str, namespace: str | None, name: str | None) -> None:
        if self.allowed(verb, resource, namespace):
            return
        plural, _, group = resource.partition(".")
        where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
        subject = f'{resource} "{name}"' if name else resource
        message = f'{subject} is forbidden: User "{USER}" cannot {verb} resource "{plural}" in API group "{group}" {where}'
        details = {"kind": plural, **({"name": name} if name else {}), **({"group": group} if group else {})}
        raise Refusal(403, "Forbidden", message, details)

    def review(self, body: Json) -> Json:
        asked = body["spec"].get("resourceAttributes") or {}
        resource = asked.get("resource", "")
        if asked.get("subresource"):
            resource += f"/{asked['subresource']}"
        if asked.get("group"):
            resource += f".{asked['group']}"
        allowed = self.allowed(asked.get("verb", ""), resource, asked.get("namespace"))
        reason = 'RBAC: allowed by RoleBinding "benchyard/benchyard"' if allowed else ""
        return {**body, "status": {"allowed": allowed, **({"reason": reason} if reason else {})}}
