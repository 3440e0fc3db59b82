"""What an image is built from: read from its Dockerfile, the same in a checkout and in an installed package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from orchestrator.images.build import Builder, BuildFailed, docker_environment
from orchestrator.images.sources import HARNESSES, NAMES, Sources, SourcesMissing, copied, find_sources
from tests.installed import ROOT, build, copy_checkout, unpack

DIGESTS = """
import json
from orchestrator.images.sources import HARNESSES, NAMES, find_sources
sources = find_sources()
print(json.dumps({name: [sources.digest(name), sorted(sources.files(name))] for name in NAMES + HARNESSES}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel of an sdist, built after an older version had left its own build behind."""
    folder = tmp_path_factory.mktemp("installed")
    checkout = copy_checkout(folder / "checkout")
    sdist = build(checkout, folder, "build_sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "sdist", filter="data")
    (source,) = (folder / "sdist").iterdir()
    stale = source / "build/lib/orchestrator/db/migrations/versions/0000_gone.py"
    stale.parent.mkdir(parents=True)
    stale.touch()
    return unpack(build(source, folder), folder / "site")


def run_installed(installed: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """With nothing but the package and the standard library."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BENCHYARD_"))}
    return subprocess.run(
        [sys.executable, "-S", "-P", *words],
        cwd="/",
        env={**env, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_an_installed_package_has_the_same_sources_as_its_checkout(installed: Path) -> None:
    done = run_installed(installed, "-c", DIGESTS)
    here = find_sources()
    assert here.root == ROOT
    wanted = {name: [here.digest(name), sorted(here.files(name))] for name in NAMES + HARNESSES}
    assert json.loads(done.stdout) == wanted, done.stderr


def test_a_build_takes_nothing_from_an_earlier_one(installed: Path) -> None:
    assert not list(installed.rglob("0000_gone.py"))


def test_without_its_extra_the_command_says_which_one_to_install(installed: Path) -> None:
    done = run_installed(installed, "-c", "from orchestrator.cli.entry import main; main()")
    assert done.returncode == 1
    assert "this command needs the extra 'orchestrator': pip install '" in done.stderr
    assert "[orchestrator]'" in done.stderr
    assert "Traceback" not in done.stderr
    module = run_installed(installed, "-m", "orchestrator.cli", "up")
    assert (module.returncode, module.stderr) == (1, done.stderr)


@pytest.mark.parametrize("image", NAMES + HARNESSES)
def test_a_context_is_what_the_dockerfile_copies(image: str, tmp_path: Path) -> None:
    sources = find_sources()
    sources.stage(image, tmp_path)
    for name in copied((tmp_path / f"{image}.Dockerfile").read_text()):
        assert (tmp_path / name).exists(), name
    staged = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in staged if "__pycache__" in path.parts or path.name.startswith(".")]
    for path in staged:
        assert bool(path.stat().st_mode & 0o111) == (path.parent.name == "scripts"), path


def test_a_dockerfile_is_read_with_its_continued_lines() -> None:
    text = "COPY a b/c /x/\nCOPY --from=build /opt /opt\nRUN cp d e\nCOPY \\\n  f a \\\n  /y/\n"
    assert copied(text) == ["a", "b/c", "f"]


def test_any_change_of_a_copied_file_changes_the_digest(tmp_path: Path) -> None:
    (tmp_path / "runner.Dockerfile").write_text("FROM x\nCOPY runner /app\n")
    package = tmp_path / "elsewhere"
    (package / "inner").mkdir(parents=True)
    (package / "inner" / "one.py").write_text("1")
    sources = Sources(tmp_path, {"runner": package})
    seen = {sources.digest("runner")}
    (package / "inner" / "one.py").write_text("2")
    seen.add(sources.digest("runner"))
    (package / "inner" / "one.py").rename(package / "inner" / "two.py")
    seen.add(sources.digest("runner"))
    (tmp_path / "runner.Dockerfile").write_text("FROM y\nCOPY runner /app\n")
    seen.add(sources.digest("runner"))
    assert len(seen) == 4
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "one.pyc").write_text("")
    assert sources.digest("runner") in seen


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourcesMissing, match="no Dockerfile in"):
        find_sources(tmp_path / "empty")
    (tmp_path / "runner.Dockerfile").write_text("COPY requirements/none.txt /src/\n")
    with pytest.raises(SourcesMissing, match=r"requirements/none\.txt"):
        Sources(tmp_path, {}).files("runner")


def test_without_the_docker_command_it_says_so() -> None:
    with pytest.raises(BuildFailed, match="install Docker's command line"):
        Builder(find_sources(), {"PATH": "/nowhere"}, lambda _: None)


def test_a_build_goes_to_the_engine_of_the_service() -> None:
    assert docker_environment("tcp://10.0.0.1:1", {"DOCKER_HOST": "unix:///x"})["DOCKER_HOST"] == "tcp://10.0.0.1:1"
    assert docker_environment(None, {"DOCKER_HOST": "unix:///x"})["DOCKER_HOST"] == "unix:///x"
