"""Which resources the fake serves, and what a request's path asks for."""

from __future__ import annotations

from dataclasses import dataclass

from tests.engines.fake_kubernetes.objects.answers import no_such_path


@dataclass(frozen=True)
class Resource:
    plural: str
    kind: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The name in refusals."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


PODS = Resource("pods", "Pod")
NODES = Resource("nodes", "Node", namespaced=False)
SECRETS = Resource("secrets", "Secret")
QUOTAS = Resource("resourcequotas", "ResourceQuota")
PRIORITY_CLASSES = Resource("priorityclasses", "PriorityClass", "scheduling.k8s.io", namespaced=False)
ACCESS_REVIEWS = Resource("selfsubjectaccessreviews", "SelfSubjectAccessReview", "authorization.k8s.io", namespaced=False)
POD_METRICS = Resource("pods", "PodMetrics", "metrics.k8s.io", "v1beta1")
RESOURCES = (
    PODS,
    NODES,
    SECRETS,
    QUOTAS,
    PRIORITY_CLASSES,
    ACCESS_REVIEWS,
    POD_METRICS,
    Resource("configmaps", "ConfigMap"),
    Resource("services", "Service"),
    Resource("serviceaccounts", "ServiceAccount"),
    Resource("events", "Event"),
    Resource("namespaces", "Namespace", namespaced=False),
    Resource("networkpolicies", "NetworkPolicy", "networking.k8s.io"),
    Resource("poddisruptionbudgets", "PodDisruptionBudget", "policy"),
    Resource("runtimeclasses", "RuntimeClass", "node.k8s.io", namespaced=False),
    Resource("leases", "Lease", "coordination.k8s.io"),
)
BY_KIND = {(resource.api_version, resource.kind): resource for resource in RESOURCES}
_BY_PATH = {(resource.group, resource.version, resource.plural): resource for resource in RESOURCES}


@dataclass(frozen=True)
class Target:
    """What a path names: a collection, an object, or a part of an object."""

    resource: Resource
    namespace: str | None = None
    name: str | None = None
    part: str | None = None

    @property
    def right(self) -> str:
        """The resource as rights name it: "pods/log", "leases.coordination.k8s.io"."""
        part = f"/{self.part}" if self.part else ""
        group = f".{self.resource.group}" if self.resource.group else ""
        return f"{self.resource.plural}{part}{group}"


def read_path(path: str) -> Target:
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            raise no_such_path()
    namespace = None
    if len(rest) >= 3 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    resource = _BY_PATH.get((group, version, rest[0])) if rest else None
    if resource is None or len(rest) > 3 or (namespace is not None and not resource.namespaced):
        raise no_such_path()
    if resource.namespaced and namespace is None and len(rest) > 1:
        raise no_such_path()
    return Target(resource, namespace, *rest[1:])
