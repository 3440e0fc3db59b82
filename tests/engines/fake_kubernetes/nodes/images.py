"""Images by name: which ones a node has, and how the kubelet speaks of those that it cannot have."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_REPOSITORY = re.compile(r"[a-z0-9]+([._/:-]+[a-z0-9]+)*(:[\w.-]+)?(@sha256:[0-9a-f]{64})?")
BACK_OFF_S = 3


@dataclass(frozen=True)
class ImageTrouble:
    """`reason` and `message` of a container that waits for its image."""

    reason: str
    message: str


@dataclass
class Images:
    """Every image in `present` is on every node; others cannot be pulled."""

    present: set[str] = field(default_factory=set)
    pullable: set[str] = field(default_factory=set)
    """Images that a registry would give."""
    programs: dict[str, str] = field(default_factory=dict)
    """Where a program of the images is on this machine."""

    def trouble(self, image: str, pull_policy: str, waited_s: float) -> ImageTrouble | None:
        """None if the container can start. `waited_s` is how long it has waited, by the kubelet's clock: between two tries
        it backs off."""
        if not _REPOSITORY.fullmatch(image):
            parse = f'couldn\'t parse image reference "{image}": invalid reference format'
            why = ": repository name must be lowercase" if image.lower() != image else ""
            return ImageTrouble("InvalidImageName", f'Failed to apply default image tag "{image}": {parse}{why}')
        if image in self.present and pull_policy != "Always":
            return None
        if pull_policy == "Never":
            return ImageTrouble("ErrImageNeverPull", f'Container image "{image}" is not present with pull policy of Never')
        if image in self.pullable or image in self.present:
            return None
        if waited_s % (2 * BACK_OFF_S) >= BACK_OFF_S:
            return ImageTrouble("ImagePullBackOff", f'Back-off pulling image "{image}"')
        words = f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": {_answer(image)}'
        return ImageTrouble("ErrImagePull", f"rpc error: code = Unknown desc = {words}")


def _answer(image: str) -> str:
    """What a runtime hears from the registry in an image's name: nobody listens there."""
    host, slash, rest = image.partition("/")
    if not slash or ":" not in host:
        return "not found"
    name, _, tag = rest.rpartition(":")
    address = f"http://{host}/v2/{name}/manifests/{tag}"
    return f'failed to do request: Head "{address}": dial tcp {host}: connect: connection refused'
