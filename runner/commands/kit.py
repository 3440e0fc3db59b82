"""`python kit.py FOLDER`, run when the image is built: copies an interpreter and the runner's libraries into one folder.

Mounted into a container of any other image, next to the runner and started through its own loader, it needs nothing from
that image: no Python, no libc. It contains only what command benchmarks and harness runs use.
"""

import compileall
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

NEEDED = ("backports.zstd", "h11", "httpx", "pydantic")
LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", "test", "tests", "idlelib", "tkinter", "turtledemo", "turtle.py", "ensurepip", "lib2to3", "pydoc_data",
    "config-*", "site-packages", "dist-packages", "venv", "sqlite3", "_sqlite3*", "_tkinter*", "_test*", "*.a", "*.exe",
)  # fmt: skip


def make(folder: Path) -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = folder / "lib" / version
    shutil.copytree(sysconfig.get_path("stdlib"), library, ignore=LEFT_OUT)
    dynload = Path(sysconfig.get_config_var("DESTSHARED"))
    if not (library / dynload.name).exists():
        shutil.copytree(dynload, library / dynload.name, ignore=LEFT_OUT)
    for name in _with_dependencies(NEEDED):
        _copy_package(name, library)
    interpreter = folder / "bin" / "python3"
    interpreter.parent.mkdir()
    shutil.copy(os.path.realpath(sys.executable), interpreter)
    _copy_libraries([interpreter, *library.rglob("*.so"), *library.rglob("*.so.*")], folder)
    compileall.compile_dir(
        library, quiet=2, stripdir=str(folder), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )


def _with_dependencies(names: tuple[str, ...]) -> set[str]:
    packages: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in packages:
            continue
        packages.add(name)
        for requirement in metadata.requires(name) or ():
            bare = re.split(r"[\s;<>=!~\[(]", requirement, maxsplit=1)[0]
            if "extra ==" not in requirement and _is_there(bare):
                waiting.append(bare)
    return packages


def _is_there(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _copy_package(name: str, library: Path) -> None:
    for file in metadata.files(name) or ():
        if ".." in file.parts or "__pycache__" in file.parts:
            continue
        target = library / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(str(file.locate()), target)


def _copy_libraries(programs: list[Path], folder: Path) -> None:
    """Copies the loader and every shared library that one of the programs needs."""
    into = folder / "so"
    into.mkdir()
    wanted: set[str] = set()
    for program in programs:
        listing = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
        wanted |= set(re.findall(r"=> (/\S+)", listing))
        for loader in re.findall(r"^\s*(/\S*/ld-linux\S*) \(", listing, re.MULTILINE):
            shutil.copy(loader, folder / "ld.so")
    for library in wanted:
        shutil.copy(library, into)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
