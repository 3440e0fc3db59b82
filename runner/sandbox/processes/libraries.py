"""Which modules programs can import: preloaded ones, and readable folders without the application's code or data."""

import os
import stat
import sys
from collections.abc import Iterator
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

from runner.sandbox.kernel.landlock import READ_DIR, READ_FILE, TRUNCATE, WRITE_FILE, Grant, executable, readable
from runner.sandbox.protocol.messages import FIRST_LIBRARY_FD

_PLAIN = """
sys os io time math cmath collections collections.abc heapq bisect itertools functools operator re json random string
copy statistics datetime decimal fractions typing dataclasses enum abc types contextlib queue threading array struct
numbers hashlib textwrap traceback linecache ast inspect calendar pprint atexit zlib warnings tokenize locale errno
signal ctypes encodings.utf_8 encodings.latin_1 encodings.ascii
"""
PLAIN = tuple(_PLAIN.split())

_FOR_NO_OPEN = """
pickle tempfile fileinput mmap concurrent.futures concurrent.futures.thread csv uuid asyncio secrets graphlib cProfile
timeit zoneinfo shlex html urllib.parse base64 binascii bz2 gzip lzma difflib doctest logging argparse sched selectors
socket subprocess multiprocessing unittest weakref platform glob fnmatch pathlib shutil codecs unicodedata stringprep
getopt optparse gettext reprlib copyreg imp importlib.resources pdb select resource tracemalloc faulthandler code
"""
FOR_NO_OPEN = tuple(_FOR_NO_OPEN.split())
"""Imported beforehand if children cannot open files."""

NUMPY = "numpy"
_NEED_NUMPY = ("numpy", "scipy", "pandas", "numba")
MATHEMATICS = "math_verify"
LANGUAGES = "langdetect"

PACKAGES = [
    "numpy",
    "numpy.libs",
    "scipy",
    "scipy.libs",
    "pandas",
    "pytz",
    "dateutil",
    "six.py",
    "sympy",
    "mpmath",
    "networkx",
    "sortedcontainers",
    "numba",
    "llvmlite",
    "more_itertools",
    "bitarray",
    "gmpy2",
    "atcoder",
    "math_verify",
    "latex2sympy2_extended",
    "antlr4",
    "langdetect",
]
"""Third-party packages that programs may read, if installed; nothing else in site-packages."""


def flavour_for(program: str) -> str:
    """Returns the zygote that suits a program: importing numpy in each child costs 40 times as much as forking with it."""
    for flavour in (MATHEMATICS, LANGUAGES):
        if flavour in program:
            return flavour
    return NUMPY if any(name in program for name in _NEED_NUMPY) else "plain"


def preloaded(flavour: str) -> tuple[str, ...]:
    """Returns the modules that a zygote of this flavour imports."""
    return (*PLAIN, flavour) if flavour in (NUMPY, MATHEMATICS, LANGUAGES) else PLAIN


def grants(working_folder: str) -> Iterator[Grant]:
    """Yields everything that a program may open."""
    for path in {*_standard_folders(), "/usr/lib", "/lib", "/lib64", "/usr/share/zoneinfo", "/etc/localtime"}:
        yield readable(path)
    for folder in _site_folders():
        yield Grant(folder, READ_DIR)
        for package in PACKAGES:
            yield readable(os.path.join(folder, package))
    yield Grant(working_folder, READ_DIR) if working_folder != "/" else Grant("/nonexistent", READ_DIR)
    yield Grant("/dev/null", READ_FILE | WRITE_FILE | TRUNCATE)
    yield readable("/dev/urandom")
    yield readable("/dev/random")
    # Not /dev/zero: mapped as shared, it is memory that no process limit counts.


def executables() -> Iterator[Grant]:
    """Yields what a program may execute if it may start processes."""
    for path in {os.path.realpath(sys.executable), "/usr/bin", "/bin", "/usr/lib", "/lib", "/lib64"}:
        yield executable(path)


def use_plain_importers() -> None:
    """Removes the installation's import hooks (editable packages, setuptools): programs see an ordinary interpreter."""
    plain = (BuiltinImporter, FrozenImporter, PathFinder)
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder in plain]


def open_hidden_folders() -> list[int]:
    """Makes libraries reachable that are inside an inaccessible folder (an interpreter in a home directory).

    Children run as another user and cannot reach them by path. They keep a descriptor of each such folder and import
    through it; Landlock decides as before. The descriptor numbers must be the same in the children.
    """
    hidden = [path for path in sys.path if os.path.isdir(path) and not _open_to_everybody(path)]
    fds = []
    for index, path in enumerate(hidden):
        fds.append(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        through = f"/proc/self/fd/{FIRST_LIBRARY_FD + index}"
        sys.path[sys.path.index(path)] = through
        for module in list(sys.modules.values()):
            folders = getattr(module, "__path__", None)
            if isinstance(folders, list):
                folders[:] = [through + name[len(path) :] if name.startswith(path + "/") else name for name in folders]
    sys.path_importer_cache.clear()
    return fds


def _open_to_everybody(path: str) -> bool:
    path = os.path.realpath(path)
    while True:
        if not os.stat(path).st_mode & stat.S_IXOTH:
            return False
        if path == "/":
            return True
        path = os.path.dirname(path)


def _standard_folders() -> set[str]:
    """Folders of the base installation, because a virtual environment's own `lib` contains its site-packages."""
    return {os.path.dirname(os.__file__), *(path for path in sys.path if path.endswith("lib-dynload"))}


def _site_folders() -> list[str]:
    return [path for path in sys.path if path.endswith(("site-packages", "dist-packages")) and os.path.isdir(path)]
