"""Runs the published programs once in each environment; the tests look at what happened to each of them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.uids import STEP, own_uid_base

ROOT = Path(__file__).parents[2]
UID_BASE = own_uid_base()
STRANGER_UID, RUNNER_UID = UID_BASE + STEP - 2, UID_BASE + STEP - 1
SUITE = ["-m", "tests.sandbox.suite", "--uid-base", str(UID_BASE)]
PROFILES = ["--allow", "3"]
"""Processes and files allowed."""
_HARDENED = """
--cap-drop ALL --cap-add SETUID --cap-add SETGID --cap-add KILL --security-opt no-new-privileges --read-only
--tmpfs /tmp:size=64m,nosuid,nodev,noexec --ipc none --network none --pids-limit 172 --memory 700m --memory-swap 700m
--ulimit core=0 --init
"""
HARDENED = _HARDENED.split()

Outcome = dict[str, Any]
Results = dict[tuple[str, str], Outcome]


def _missing(what: str) -> None:
    """What a test needs and can't get fails in CI and is skipped on somebody's laptop."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def _collect(command: list[str], **options: Any) -> Results:
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False, **options)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, f"{command} said nothing: {done.stderr[-2000:]}"
    return {(line["kind"], line["name"]): line for line in lines}


def _on_host(*options: str, python: str = sys.executable) -> Results:
    environment = {"PATH": os.defpath, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return _collect([python, *SUITE, *options], env=environment, cwd="/")


def _python_for_everybody() -> str:
    """An interpreter that another user may execute; the one in use may lie in somebody's home."""
    for candidate in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        check = "import sys, runner.sandbox.executor; sys.exit(sys.version_info < (3, 11))"
        options: dict[str, Any] = {"user": STRANGER_UID} if os.geteuid() == 0 else {}
        try:
            command = [candidate, "-B", "-c", check]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, **options)
        except OSError:
            continue
        if done.returncode == 0:
            return candidate
    _missing("no Python 3.11 that an ordinary user may execute")
    raise AssertionError


def host_root() -> Results:
    if os.geteuid() != 0:
        _missing("needs root")
    return _on_host()


def host_user() -> Results:
    become = ["--become", str(STRANGER_UID)] if os.geteuid() == 0 else []
    return _on_host(*become, python=_python_for_everybody())


def host_user_no_landlock() -> Results:
    become = ["--become", str(STRANGER_UID)] if os.geteuid() == 0 else []
    return _on_host(*become, "--no-landlock", python=_python_for_everybody())


def container_root(image: str) -> Results:
    return _in_container(image, HARDENED, "--drop", str(RUNNER_UID))


def container_user(image: str) -> Results:
    return _in_container(image, ["--user", str(STRANGER_UID), "--cap-drop", "ALL", "--network", "none"])


def _in_container(image: str, flags: list[str], *options: str) -> Results:
    name = f"bysbx-{os.getpid()}-{abs(hash(tuple(flags))) % 10_000}"
    try:
        return _collect(["docker", "run", "--rm", "--name", name, *flags, image, "python3", *SUITE, *options])
    finally:
        subprocess.run(["docker", "rm", "-f", name], capture_output=True, check=False)


def host_root_profiles() -> Results:
    if os.geteuid() != 0:
        _missing("needs root")
    return _on_host(*PROFILES)


def host_user_profiles() -> Results:
    become = ["--become", str(STRANGER_UID)] if os.geteuid() == 0 else []
    return _on_host(*become, *PROFILES, "--only", "profile_", python=_python_for_everybody())


def container_profiles(image: str) -> Results:
    return _in_container(image, HARDENED, "--drop", str(RUNNER_UID), *PROFILES, "--only", "profile_")


ON_HOST: dict[str, Callable[[], Results]] = {
    "host-root": host_root,
    "host-user": host_user,
    "host-user-no-landlock": host_user_no_landlock,
}
IN_CONTAINER: dict[str, Callable[[str], Results]] = {"container": container_root, "container-user": container_user}
PROFILES_ON_HOST = {"host-root": host_root_profiles, "host-user": host_user_profiles}
ENVIRONMENTS = [*ON_HOST, *(pytest.param(name, marks=pytest.mark.engine) for name in IN_CONTAINER)]


@pytest.fixture(scope="session")
def sandbox_image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A throwaway image: the base, numpy, the sandbox and its programs."""
    base = os.environ.get("BENCHYARD_PYTHON_IMAGE", "benchyard-python:3.13")
    if shutil.which("docker") is None:
        _missing("no docker client")
    if subprocess.run(["docker", "image", "inspect", base], capture_output=True, check=False).returncode:
        base = "python:3.13-slim-trixie"
    context = tmp_path_factory.mktemp("image")
    leave_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "runner", context / "runner", ignore=leave_out)
    shutil.copytree(ROOT / "tests/sandbox", context / "tests/sandbox", ignore=leave_out)
    (context / "Dockerfile").write_text(
        f"FROM {base}\nRUN pip install --quiet --no-cache-dir --disable-pip-version-check --break-system-packages numpy\n"
        "ENV PYTHONPATH=/app PYTHONDONTWRITEBYTECODE=1\nWORKDIR /app\n"
        "COPY runner /app/runner\nCOPY tests /app/tests\n"
    )
    tag = f"bysbx-suite:{os.getpid()}"
    built = subprocess.run(["docker", "build", "-q", "-t", tag, str(context)], capture_output=True, text=True, check=False)
    if built.returncode:
        _missing(f"the test image can't be built: {built.stderr[-500:]}")
    yield tag
    subprocess.run(["docker", "rmi", "-f", tag], capture_output=True, check=False)


@pytest.fixture(scope="session")
def happened_with_profiles(request: pytest.FixtureRequest) -> Callable[[str], Results]:
    """The same for programs that may start processes and write files."""
    known: dict[str, Results] = {}

    def look(environment: str) -> Results:
        if environment not in known:
            on_host = PROFILES_ON_HOST.get(environment)
            known[environment] = on_host() if on_host else container_profiles(request.getfixturevalue("sandbox_image"))
        return known[environment]

    return look


@pytest.fixture(scope="session")
def happened(request: pytest.FixtureRequest) -> Callable[[str], Results]:
    """What happened to every program in an environment; each environment runs once."""
    known: dict[str, Results] = {}

    def look(environment: str) -> Results:
        if environment not in known:
            if environment in ON_HOST:
                known[environment] = ON_HOST[environment]()
            else:
                known[environment] = IN_CONTAINER[environment](request.getfixturevalue("sandbox_image"))
        return known[environment]

    return look
