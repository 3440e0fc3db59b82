"""What the kernel says of a container, in both versions of control groups, and of plain processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.runs.reports.machine_cost import last_reading
from runner.process.final_reading import CountedSince, arguments
from runner.process.kernel_usage import EarlyUsage, Reading, limits, of_processes, reader, since
from runner.reporting.usage_samples import MAX_WAITING, UsageLog

UNIFIED = {
    "cpu.stat": "usage_usec 2500000\nuser_usec 1\nnr_throttled 3\nthrottled_usec 700000\n",
    "cpu.max": "50000 100000\n",
    "memory.current": "5000\n",
    "memory.stat": "anon 3000\ninactive_file 1500\n",
    "memory.max": "1073741824\n",
}
SPLIT = {
    "cpuacct/cpuacct.usage": "2500000000\n",
    "cpu/cpu.stat": "nr_periods 5\nnr_throttled 3\nthrottled_time 700000000\n",
    "cpu/cpu.cfs_quota_us": "50000\n",
    "cpu/cpu.cfs_period_us": "100000\n",
    "memory/memory.usage_in_bytes": "5000\n",
    "memory/memory.stat": "cache 1\ninactive_file 3\ntotal_inactive_file 1500\n",
    "memory/memory.limit_in_bytes": "1073741824\n",
}


def lay_out(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize("files", [UNIFIED, SPLIT], ids=["version-2", "version-1"])
def test_a_container(tmp_path: Path, files: dict[str, str]) -> None:
    root = lay_out(tmp_path, files)
    assert reader("docker", root)() == Reading(2.5, 3500, 0.7)
    assert limits("docker", root) == {"cpu_limit": 0.5, "memory_limit_bytes": 1 << 30}
    assert limits("process", root) == {}


@pytest.mark.parametrize("files", [UNIFIED, SPLIT], ids=["version-2", "version-1"])
def test_the_last_reading_is_a_line_of_the_log(tmp_path: Path, files: dict[str, str]) -> None:
    words = arguments(7, CountedSince.seconds_ago(60.0, 0.75), lay_out(tmp_path / "a $b", files))
    assert words is not None
    done = subprocess.run(words, check=False, env={}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (7, "")
    said = last_reading(done.stderr)
    assert said is not None
    assert (said.vcpu_s, said.lived_s >= 59.98) == (1.75, True)
    (tmp_path / "a $b" / next(iter(files))).write_text("")
    done = subprocess.run(words, check=False, env={}, capture_output=True, text=True)
    assert (done.returncode, last_reading(done.stderr)) == (7, None)
    assert arguments(7, CountedSince(0.0), tmp_path / "none") is None


def test_no_limit_is_none(tmp_path: Path) -> None:
    assert limits("docker", lay_out(tmp_path, {"cpu.max": "max 100000\n", "memory.max": "max\n"})) == {}
    v1 = {"cpu/cpu.cfs_quota_us": "-1\n", "memory/memory.limit_in_bytes": f"{2**63 - 4096}\n"}
    assert limits("docker", lay_out(tmp_path / "1", v1)) == {}


def test_a_process_and_those_it_started(tmp_path: Path) -> None:
    work = "x = bytearray(60 << 20)\nfor i in range(3_000_000): pass\nprint(1, flush=True)\ninput()"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {work!r}])"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"1\n"
        found = of_processes(parent.pid)
        parent.communicate(b"\n")
    assert found is not None
    assert found.memory_bytes > 60 << 20
    assert found.cpu_s > 0.05
    assert of_processes(parent.pid) is None
    assert reader("docker", tmp_path)() is not None, "without control groups the processes are counted"


def test_samples_wait_until_they_are_stored_and_never_become_many() -> None:
    now = [0.0]
    log = UsageLog(lambda: Reading(now[0] / 2, 10), clock=lambda: now[0])
    for _ in range(3):
        log.take()
        now[0] += 1
    waiting = log.waiting()
    assert [sample.at_s for sample in waiting] == [0, 1, 2]
    log.take()
    log.sent(waiting)
    assert [sample.at_s for sample in log.waiting()] == [3]
    for _ in range(5000):
        now[0] += log.step_s
        log.take()
    assert len(log.waiting()) <= MAX_WAITING
    assert log.waiting()[-1].at_s == pytest.approx(now[0], abs=0.01)
    assert log.step_s == 30


def test_what_was_read_while_everything_loaded_comes_first() -> None:
    ages = iter(n / 10 for n in range(1_000_000))
    early = EarlyUsage(lambda: Reading(0.5, 10), lambda: next(ages))
    found = early.stop()
    assert found, "one reading at least, however soon it ends"
    assert early.stop() is found
    log = UsageLog(lambda: Reading(1.0, 20), clock=lambda: 100.0, age_s=5.0, early=found)
    log.take()
    assert [(sample.at_s, sample.memory_bytes) for sample in log.waiting()][:: len(found)] == [(0.0, 10), (5.0, 20)]


def test_what_a_runner_used_before_its_run_does_not_count() -> None:
    read = iter([Reading(2.5, 30, 0.25), Reading(2.75, 50, None), None])
    later = since(lambda: next(read), Reading(1.5, 100, 0.125))
    assert later() == Reading(1.0, 30, 0.125)
    assert later() == Reading(1.25, 50, None), "memory is what there is, not what was added"
    assert later() is None
    assert since(reader("process"), None)() is not None
