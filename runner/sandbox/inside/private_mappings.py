"""`mmap.mmap(-1, ...)` for single-process programs: private memory, which behaves the same and which the kernel counts.

By default Python asks for shareable memory. Pages written there stay occupied after a partial unmap or `madvise`, and no
process limit counts them, so the filter refuses such mappings.
"""

import mmap
from typing import Any

_PROTECTION = {
    mmap.ACCESS_READ: mmap.PROT_READ,
    mmap.ACCESS_WRITE: mmap.PROT_READ | mmap.PROT_WRITE,
}
_ANONYMOUS = -1
_original = mmap.mmap


class PrivateMmap(_original):
    """The original, but never shared unless it maps a file."""

    __slots__ = ()

    def __new__(cls, fileno: int, length: int, *arguments: Any, **options: Any) -> "PrivateMmap":
        if fileno == _ANONYMOUS:
            arguments, options = _private(arguments, options)
        return _original.__new__(cls, fileno, length, *arguments, **options)


def _private(arguments: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    keywords = {**dict(zip(("flags", "prot", "access", "offset"), arguments, strict=False)), **options}
    if "flags" not in keywords and keywords.get("access") in _PROTECTION:
        keywords["prot"] = _PROTECTION[keywords.pop("access")]
    if not keywords.get("access"):
        keywords["flags"] = keywords.get("flags", mmap.MAP_SHARED) & ~mmap.MAP_SHARED | mmap.MAP_PRIVATE
    return (), keywords


def install() -> None:
    """Installs it for every program of this process."""
    PrivateMmap.__name__ = PrivateMmap.__qualname__ = "mmap"
    PrivateMmap.__module__ = "mmap"
    vars(mmap)["mmap"] = PrivateMmap
