"""The active layers of protection, as one value for the run record and `benchyard doctor`."""

from dataclasses import dataclass

_NAMES = {(True, True): "full", (False, True): "shared-uid", (True, False): "no-landlock", (False, False): "minimal"}


@dataclass(frozen=True)
class Level:
    """The layers around each execution."""

    uid: bool
    """Every slot has its own user id, different from the runner's."""
    landlock: int
    """Active Landlock ABI, 0 for none."""
    seccomp: str
    """`files-by-landlock`, `read-only` or `no-open`: how the filter treats opening files; `off` for no filter."""
    rlimits: bool
    cgroup: str = ""
    """`version 1` or `version 2` if every execution has its own control group; otherwise empty."""
    no_cgroup: str = ""
    """Why there is no control group."""

    @property
    def name(self) -> str:
        """`full`, `shared-uid`, `no-landlock`, `minimal` or `none`."""
        if self.seccomp == "off":
            return "none"
        return _NAMES[self.uid, self.landlock > 0]

    def has_all_of(self, name: str) -> bool:
        """Whether all layers of the level `name` are on."""
        return self.seccomp != "off" and suffices(self.uid, self.landlock > 0, name)

    @property
    def sentence(self) -> str:
        """The level as a sentence for people."""
        on = [
            "own user id per slot" if self.uid else "",
            f"Landlock (ABI {self.landlock})" if self.landlock else "",
            f"seccomp ({self.seccomp})" if self.seccomp != "off" else "",
            "resource limits" if self.rlimits else "",
            f"own cgroup per execution ({self.cgroup})" if self.cgroup else "",
        ]
        off = [
            "" if self.uid else "no separate user id",
            "" if self.landlock else "no Landlock",
            "no seccomp" if self.seccomp == "off" else "",
            "" if self.rlimits else "no resource limits",
            "" if self.cgroup else f"no cgroup of its own ({self.no_cgroup or 'the surrounding one is the outer wall'})",
        ]
        have = ", ".join(part for part in on if part) or "no protective layer"
        lack = ", ".join(part for part in off if part)
        return f"Sandbox level {self.name}: {have}" + (f"; {lack}." if lack else ".")

    def __str__(self) -> str:
        return self.sentence


def suffices(uid: bool, use_landlock: bool, name: str) -> bool:
    """Whether these optional layers include all of the level `name`."""
    needed = next((layers for layers, level_name in _NAMES.items() if level_name == name), None)
    if needed is None:
        raise ValueError(f"there is no sandbox level {name!r}; one of {', '.join(_NAMES.values())}")
    return uid >= needed[0] and use_landlock >= needed[1]
