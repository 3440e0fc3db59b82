"""The real measuring process, without a container: what it measures, and what becomes of commands that misbehave."""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from runner.commands.measuring_process import GO, start
from runner.commands.user_image import Guest
from runner.commands.work import item_of
from runner.contract.commands import CommandFile, CommandTask, file_name_problem
from runner.contract.events import ItemResult, Outcome


class Link:
    def __init__(self, connection: socket.socket, task: CommandTask) -> None:
        self._connection, self._task = connection, task
        self._lines = connection.makefile("rb")
        self.hello = self._read()

    def _read(self) -> dict[str, Any]:
        return dict(json.loads(self._lines.readline()))

    def repeat(self) -> ItemResult:
        self._connection.sendall(GO)
        return item_of(self._read(), "b", "repeat", 0, self._task)

    def close(self) -> None:
        self._lines.close()
        self._connection.close()


@pytest.fixture
def keep(tmp_path: Path) -> Iterator[Any]:
    links: list[Link] = []

    def open_link(*argv: str, **more: Any) -> Link:
        task = CommandTask(name="b", image="i", argv=list(argv), repeats=1, **more)
        folder = tmp_path / "scratch"
        folder.mkdir(exist_ok=True)
        guest = Guest("i", "", {"PATH": os.environ["PATH"]}, str(folder), (str(folder),))
        links.append(Link(start(task, guest, "process", -1), task))
        return links[-1]

    yield open_link
    for link in links:
        link.close()


def python(code: str) -> tuple[str, ...]:
    return sys.executable, "-c", code


SPIN = "import time\nwhile time.process_time() < {}: pass\n"


def test_processor_time_of_the_whole_tree_is_what_the_kernel_says(keep: Any) -> None:
    orphan = (
        "import os\nif os.fork() == 0:\n    if os.fork() == 0:\n        begin = time.process_time()\n"
        "        while time.process_time() - begin < 0.3: pass\n        open('done', 'w').close()\n    os._exit(0)\n"
        "os.wait()\nwhile not os.path.exists('done'): time.sleep(0.02)\n"
    )
    code = SPIN.format(0.3) + orphan
    item = keep(*python(code)).repeat()
    assert item.outcome is Outcome.PASSED, item
    assert item.repeat is not None
    assert item.repeat.user_s + item.repeat.system_s == pytest.approx(item.usage.cpu_s)
    assert item.usage.cpu_s >= 0.6, "the orphan's time is missing"
    assert item.usage.wall_s >= 0.3


def test_peak_memory_is_the_commands_and_not_the_runners(keep: Any) -> None:
    small = keep("sleep", "1").repeat()
    below = keep("sh", "-c", f"{sys.executable} -c 'import time; time.sleep(2)'; true").repeat()
    large = keep(*python("import time; x = bytearray(200 << 20); time.sleep(2)")).repeat()  # looked at while it lasts
    assert 0 < small.usage.peak_bytes < 8 << 20
    assert 5 << 20 < below.usage.peak_bytes < 30 << 20, "a child of the first process"
    assert 200 << 20 < large.usage.peak_bytes < 260 << 20


@pytest.mark.parametrize(
    ("argv", "more", "outcome", "said"),
    [
        (("sh", "-c", "echo before; exit 3"), {}, Outcome.RUNTIME_ERROR, "exit 3"),
        (("sh", "-c", "kill -SEGV $$"), {}, Outcome.RUNTIME_ERROR, "signal 11"),
        (("no-such-program",), {}, Outcome.RUNTIME_ERROR, "the image has no program 'no-such-program'"),
        (("true",), {"workdir": "/no/such/place"}, Outcome.RUNTIME_ERROR, "no directory '/no/such/place'"),
        (("sleep", "60"), {"timeout_s": 0.3}, Outcome.TIME_LIMIT, "time limit of 0.3 s exceeded"),
        (("true",), {"figures": [{"name": "x"}]}, Outcome.PASSED, "figure not found: x"),
        (("sh", "-c", "printf 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'"),
         {"figures": [{"name": "x", "pattern": r"(a+)+$"}]}, Outcome.PASSED, "took longer than"),
    ],
    ids=["exit", "signal", "no-program", "no-folder", "time", "figure", "endless-pattern"],
)  # fmt: skip
def test_ends(
    keep: Any, argv: tuple[str, ...], more: dict[str, Any], outcome: Outcome, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.commands.measuring_process.FIGURES_S", 1)
    item = keep(*argv, **more).repeat()
    assert (item.outcome, said in item.detail) == (outcome, True), item


def test_nothing_is_left_running_or_lying_about_for_the_next_repeat(keep: Any, tmp_path: Path) -> None:
    link = keep("sh", "-c", "ls | wc -l; (setsid sleep 300 & echo $! > pid); cat pid; mkdir -p a/b; touch a/b/c")
    for _ in range(2):
        item = link.repeat()
        found, pid = item.repeat.output.split()
        assert found == "0", "files of the repeat before"
        assert not Path(f"/proc/{pid}").exists() or Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


def test_files_stand_in_the_working_directory_as_they_were_sent_before_every_repeat(keep: Any) -> None:
    sent = [
        CommandFile(name="bench.py", content=base64.b64encode(b"print(open('data/in put.txt').read())").decode()),
        CommandFile(name="data/in put.txt", content=base64.b64encode("gr\u00fc\u00df dich".encode()).decode()),
        CommandFile(name="go", content=base64.b64encode(b"#!/bin/sh\nexec $0.py").decode(), executable=True),
    ]
    script = (
        "ls -A; test -x go && test ! -x bench.py && "
        f"{sys.executable} bench.py && echo spoiled > bench.py && rm data/* && touch left"
    )
    link = keep("/bin/sh", "-c", script, files=sent)
    for _ in range(2):
        item = link.repeat()
        assert item.outcome is Outcome.PASSED, item
        assert item.repeat is not None
        assert item.repeat.output == "bench.py\ndata\ngo\ngr\u00fc\u00df dich\n"


def test_files_that_cannot_be_written_are_said(keep: Any, tmp_path: Path) -> None:
    link = keep("true", files=[CommandFile(name="a", content="")])
    (tmp_path / "scratch" / "work").write_text("in the way")
    item = link.repeat()
    assert (item.outcome, "files could not be written" in item.detail) == (Outcome.RUNTIME_ERROR, True)
    assert link.repeat().outcome is Outcome.PASSED, "what was in the way is gone with the repeat"


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../up", "a/../b", "a//b", "./a", "a/.", "a\\b", "a\nb", "x" * 101, "/".join("abcdefghi")]
)
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    assert file_name_problem(name)
    with pytest.raises(ValidationError):
        CommandFile(name=name, content="")


def test_hostile_output_is_cut_and_readable(keep: Any) -> None:
    code = (
        r"import sys; w = sys.stdout.buffer.write; [w(b'\xff\xfe\x00\x1b[2J' * 200000) for _ in range(100)]; w(b'\nend 7\n')"
    )
    item = keep(*python(code), figures=[{"name": "end", "pattern": r"^end (\d+)$"}]).repeat()
    assert item.outcome is Outcome.PASSED
    assert item.repeat is not None
    assert item.repeat.output_bytes == 140_000_007
    assert len(item.repeat.output) < 70_000
    assert "left out" in item.repeat.output
    assert "\x00" not in item.repeat.output
    assert [figure.value for figure in item.repeat.figures] == [7.0]
    item.model_dump_json().encode()


def test_commands_have_no_network_and_no_way_to_make_namespaces(keep: Any) -> None:
    code = (
        "import ctypes, socket\n"
        "for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):\n"
        "    try: socket.socket(family); print('open')\n"
        "    except PermissionError: print('refused')\n"
        "socket.socketpair(); socket.socket(socket.AF_UNIX)\n"
        "libc = ctypes.CDLL(None)\nprint(libc.unshare(0x10000000), libc.unshare(0x40000000))\n"
        "import threading; threading.Thread(target=lambda: print('thread')).start()\n"
    )
    link = keep(*python(code))
    assert link.hello["network"] == "none"
    item = link.repeat()
    assert item.repeat.output.split() == ["refused"] * 3 + ["-1", "-1", "thread"], item


def test_descriptors_and_environment_of_the_runner_stay_with_it(keep: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHYARD_SOMETHING", "secret")
    item = keep("sh", "-c", "ls /proc/self/fd | wc -l; env", env={"MINE": "1"}).repeat()
    assert item.repeat.output.splitlines()[0] == "4"
    assert "MINE=1" in item.repeat.output
    assert "BENCHYARD" not in item.repeat.output
