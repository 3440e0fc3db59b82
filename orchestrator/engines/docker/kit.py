"""Creates the container that holds the runner's kit for users' images, once per runner image."""

from __future__ import annotations

import contextlib
import time

from orchestrator.engines.bounded_threads import Deadline
from orchestrator.engines.docker.api import Conflict, DockerApi
from orchestrator.engines.docker.facts import labels_in
from orchestrator.engines.docker.guest_images import (
    LABEL_KIT,
    Guest,
    check_allowed,
    kit_name,
    kit_options,
    missing,
    own_image_missing,
    read_guest,
)
from orchestrator.engines.docker.options import DockerEngineConfig
from orchestrator.engines.engine import LABEL_INSTANCE, EngineUnreachable, ImageMissing, LaunchRequest
from orchestrator.engines.launch_rules import is_ours

TRIES, PAUSE_S = 40, 0.2


def prepare_guest(api: DockerApi, request: LaunchRequest, config: DockerEngineConfig, deadline: Deadline) -> Guest:
    """Describe the user's image, and make sure that the kit exists."""
    assert request.guest is not None
    check_allowed(request.guest, request.image, config.guest_images)
    described = api.find_image(request.guest)
    if described is None:
        raise ImageMissing(missing(request.guest))
    deadline.check()
    kit = _kit(api, request.image, config, deadline)
    return read_guest(request.guest, described, kit, network=config.guest_network is not None)


def remove_kits(api: DockerApi, config: DockerEngineConfig, without: str | None = None) -> None:
    """Remove our kits, not other installations'. Containers that use one keep its volume until they are removed."""
    for container in api.ids([f"{LABEL_INSTANCE}={config.instance}", LABEL_KIT]):
        described = api.inspect(container)
        if described is None or described["Name"].removeprefix("/") == without:
            continue
        if is_ours(labels_in(described), config.instance, config.owner):
            api.remove(container)


def _kit(api: DockerApi, image: str, config: DockerEngineConfig, deadline: Deadline) -> str:
    """The name of the kit's container. It exists only with its volume complete, so a crash leaves no partial kit."""
    own = api.find_image(image)
    if own is None:
        raise ImageMissing(own_image_missing(image))
    name = kit_name(config.instance, str(own["Id"]))
    for _ in range(TRIES):
        if api.inspect(name) is not None:
            return name
        deadline.check()
        with contextlib.suppress(Conflict):  # another thread or process is creating it
            api.create(kit_options(config.instance, image, str(own["Id"]), config.owner))
            remove_kits(api, config, without=name)
            return name
        time.sleep(PAUSE_S)
    raise EngineUnreachable(f"Container {name} is being made and does not appear.")
