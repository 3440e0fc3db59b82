"""The filter, executed by a small model of the kernel's machine, for both architectures and without installing it."""

import errno
import struct

import pytest

from runner.sandbox.kernel.bpf import ALLOW, ASK, KILL_PROCESS, refuse
from runner.sandbox.kernel.seccomp import (
    ALWAYS,
    AUDIT_ARCH,
    CLONE_BY_TEMPLATE,
    FOR_FILES,
    FOR_JUDGES,
    FOR_OWN_FILES,
    FOR_PROCESSES,
    OWN_PID,
    Inherited,
    OpenMode,
    Rules,
    build,
    build_gate,
)
from runner.sandbox.kernel.syscall_numbers import NUMBERS
from runner.sandbox.limits import Allow

ARCHES = sorted(NUMBERS)
EPERM, ENOSYS, EACCES, ENOTTY = (refuse(code) for code in (errno.EPERM, errno.ENOSYS, errno.EACCES, errno.ENOTTY))


def answer(program: bytes, number: int, *arguments: int, arch: int) -> int:
    """What the kernel would answer."""
    padded = [argument & 0xFFFFFFFFFFFFFFFF for argument in (*arguments, 0, 0, 0, 0, 0, 0)][:6]
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, arch, 0, *padded)
    at = accumulator = 0
    while True:
        code, yes, no, value = struct.unpack_from("<HBBI", program, at * 8)
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif code == 0x54:
            accumulator &= value
        elif code == 0x06:
            return value
        elif code == 0x05:
            at += value
        else:
            tests = {0x15: accumulator == value, 0x25: accumulator > value, 0x35: accumulator >= value}
            at += yes if (tests[code] if code in tests else bool(accumulator & value)) else no


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("mode", list(OpenMode))
def test_exactly_the_list_is_allowed(arch: str, mode: OpenMode) -> None:
    program, numbers = build(arch, Rules(mode)), NUMBERS[arch]
    allowed = {numbers[name] for name in ALWAYS if name in numbers}
    special = {
        numbers[name]
        for name in "clone clone3 open openat openat2 socketpair sendto fcntl ioctl prctl prlimit64 kill tgkill".split()  # noqa: SIM905
        if name in numbers
    }
    for number in range(600):
        if number in special:
            continue
        got = answer(program, number, arch=AUDIT_ARCH[arch])
        assert got == (ALLOW if number in allowed else ENOSYS if number >= 424 else EPERM), number


CASES = [
    ("clone", (0x00010000 | 0x100,), ALLOW),
    ("clone", (17,), EPERM),
    ("clone", (0x00010000 | 0x10000000,), EPERM),
    ("clone", (0x00010000 | 0x02000000,), EPERM),
    ("clone3", (0, 0), ENOSYS),
    ("openat2", (0, 0), ENOSYS),
    ("socketpair", (1, 1), ALLOW),
    ("socketpair", (1, 1 | 0o2000000), ALLOW),
    ("socketpair", (1, 2), EACCES),
    ("socketpair", (1, 5), EACCES),
    ("socketpair", (2, 1), EACCES),
    ("sendto", (4, 0, 0, 0, 0), ALLOW),
    ("sendto", (4, 0, 0, 0, 0x1000), EACCES),
    ("sendto", (4, 0, 0, 0, 0x7F0000000000), EACCES),
    ("fcntl", (0, 1030), ALLOW),
    ("fcntl", (0, 8), EPERM),
    ("fcntl", (0, 1031), EPERM),
    ("fcntl", (0, 1033), EPERM),
    ("ioctl", (0, 0x5401), ALLOW),
    ("ioctl", (0, 0x5412), ENOTTY),
    ("prctl", (15,), ALLOW),
    ("prctl", (4,), EPERM),
    ("prctl", (22,), EPERM),
    ("prlimit64", (0,), ALLOW),
    ("prlimit64", (1,), EPERM),
    ("kill", (OWN_PID,), ALLOW),
    ("kill", (1,), EPERM),
    ("kill", (-1,), EPERM),
    ("kill", (0,), EPERM),
    ("tgkill", (OWN_PID, 5), ALLOW),
    ("tgkill", (1, 1), EPERM),
    ("mmap", (0, 4096, 3, 0x22), ALLOW),
    ("mmap", (0, 4096, 3, 0x22 | 0x4000), ALLOW),
    ("mmap", (0, 4096, 1, 0x01), ALLOW),
    ("mmap", (0, 4096, 1, 0x02), ALLOW),
    ("mmap", (0, 4096, 3, 0x21), EPERM),
    ("mmap", (0, 4096, 3, 0x23), EPERM),
    ("mmap", (0, 4096, 3, 0x21 | 0x8000), EPERM),
]


@pytest.mark.parametrize("arch", ARCHES)
def test_processes_may_share_memory(arch: str) -> None:
    program = build(arch, Rules.for_profile(OpenMode.by_landlock, Allow.PROCESSES, True, True))
    assert answer(program, NUMBERS[arch]["mmap"], 0, 4096, 3, 0x21, arch=AUDIT_ARCH[arch]) == ALLOW


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(("name", "arguments", "expected"), CASES)
def test_rules_by_argument(arch: str, name: str, arguments: tuple[int, ...], expected: int) -> None:
    program = build(arch, Rules(OpenMode.by_landlock))
    assert answer(program, NUMBERS[arch][name], *arguments, arch=AUDIT_ARCH[arch]) == expected


@pytest.mark.parametrize(
    ("mode", "flags", "expected"),
    [
        (OpenMode.by_landlock, 0o1101, ALLOW),
        (OpenMode.read_only, 0, ALLOW),
        (OpenMode.read_only, 0o2000000, ALLOW),
        (OpenMode.read_only, 0o1, EACCES),
        (OpenMode.read_only, 0o100, EACCES),
        (OpenMode.read_only, 0o20200002, EACCES),
        (OpenMode.no_open, 0, EACCES),
    ],
)
@pytest.mark.parametrize("arch", ARCHES)
def test_opening_files(arch: str, mode: OpenMode, flags: int, expected: int) -> None:
    program, numbers = build(arch, Rules(mode)), NUMBERS[arch]
    assert answer(program, numbers["openat"], -100, 0, flags, arch=AUDIT_ARCH[arch]) == expected
    if "open" in numbers:
        assert answer(program, numbers["open"], 0, flags, arch=AUDIT_ARCH[arch]) == expected


def test_foreign_tables_are_closed() -> None:
    program = build("x86_64", Rules(OpenMode.by_landlock))
    assert answer(program, 0, arch=0x40000003) == KILL_PROCESS
    assert answer(program, 0, arch=AUDIT_ARCH["aarch64"]) == KILL_PROCESS
    assert answer(program, 0x40000000, arch=AUDIT_ARCH["x86_64"]) == ENOSYS
    assert answer(program, -1, arch=AUDIT_ARCH["x86_64"]) == ENOSYS


@pytest.mark.parametrize("arch", ARCHES)
def test_judges_may_receive_descriptors_and_programs_may_not(arch: str) -> None:
    number = NUMBERS[arch]["recvmsg"]
    assert answer(build(arch, Rules(OpenMode.by_landlock)), number, arch=AUDIT_ARCH[arch]) == EPERM
    assert answer(build(arch, Rules(OpenMode.by_landlock, FOR_JUDGES)), number, arch=AUDIT_ARCH[arch]) == ALLOW


NAMESPACE = 0x10000000


@pytest.mark.parametrize("arch", ARCHES)
def test_profiles_allow_their_own_calls_and_no_others(arch: str) -> None:
    numbers = NUMBERS[arch]
    profiles = {
        allow: build(arch, Rules.for_profile(OpenMode.by_landlock, allow, own_uid=True, confined=False))
        for allow in map(Allow, range(4))
    }
    for allow, program in profiles.items():
        for name in (*FOR_PROCESSES, "execve", *FOR_FILES, *FOR_OWN_FILES):
            wanted = Allow.FILES if name in (*FOR_FILES, *FOR_OWN_FILES) else Allow.PROCESSES
            if name in numbers:
                got = answer(program, numbers[name], arch=AUDIT_ARCH[arch])
                assert got == (ALLOW if wanted in allow else EPERM), (allow, name)
        may_fork = Allow.PROCESSES in allow
        assert answer(program, numbers["clone"], 17, arch=AUDIT_ARCH[arch]) == (ALLOW if may_fork else EPERM)
        assert answer(program, numbers["clone"], 17 | NAMESPACE, arch=AUDIT_ARCH[arch]) == EPERM
        assert answer(program, numbers["kill"], 4711, arch=AUDIT_ARCH[arch]) == (ALLOW if may_fork else EPERM)


@pytest.mark.parametrize("arch", ARCHES)
def test_a_shared_user_id_narrows_the_profiles(arch: str) -> None:
    numbers, arch_number = NUMBERS[arch], AUDIT_ARCH[arch]
    both = Allow.PROCESSES | Allow.FILES
    shared = build(arch, Rules.for_profile(OpenMode.by_landlock, both, own_uid=False, confined=False))
    assert answer(shared, numbers["kill"], 4711, arch=arch_number) == EPERM
    assert answer(shared, numbers["fchmodat"], arch=arch_number) == EPERM
    confined = build(arch, Rules.for_profile(OpenMode.by_landlock, both, own_uid=False, confined=True))
    assert answer(confined, numbers["kill"], 4711, arch=arch_number) == ALLOW
    closed = build(arch, Rules.for_profile(OpenMode.no_open, both, own_uid=True, confined=True))
    assert answer(closed, numbers["execve"], arch=arch_number) == EPERM


STEM = Rules(OpenMode.by_landlock, inherited=Inherited(uid=58_001, jobs_fd=1000))


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("clone", (CLONE_BY_TEMPLATE,), ALLOW),
        ("clone", (CLONE_BY_TEMPLATE | 0x10000000,), EPERM),
        ("clone", (17,), EPERM),
        ("clone", (0x00010000 | 0x100,), ALLOW),
        ("clone3", (0, 0), ENOSYS),
        ("setresuid", (58_001, 58_001, 58_001), ALLOW),
        ("setresuid", (58_001, 0, 58_001), EPERM),
        ("setresgid", (0, 0, 0), EPERM),
        ("setgroups", (0,), ALLOW),
        ("setgroups", (1,), EPERM),
        ("prctl", (1, 9), ALLOW),
        ("prctl", (1, 0), EPERM),
        ("prctl", (4, 0), ALLOW),
        ("prctl", (4, 1), EPERM),
        ("prctl", (15,), ALLOW),
        ("recvmsg", (1000,), ALLOW),
        ("recvmsg", (4,), EPERM),
        ("prlimit64", (1,), EPERM),
    ],
)
def test_who_is_born_behind_the_filter_may_become_a_program_and_no_more(
    arch: str, name: str, arguments: tuple[int, ...], expected: int
) -> None:
    assert answer(build(arch, STEM), NUMBERS[arch][name], *arguments, arch=AUDIT_ARCH[arch]) == expected


@pytest.mark.parametrize("arch", ARCHES)
def test_the_gate_asks_about_forks_and_signals_and_nothing_else(arch: str) -> None:
    program, numbers = build_gate(arch), NUMBERS[arch]
    for number in range(600):
        asked = number in (numbers["kill"], numbers["tgkill"])
        assert answer(program, number, arch=AUDIT_ARCH[arch]) == (ASK if asked else ALLOW)
    assert answer(program, numbers["clone"], CLONE_BY_TEMPLATE, arch=AUDIT_ARCH[arch]) == ASK
    assert answer(program, numbers["clone"], 0x00010000, arch=AUDIT_ARCH[arch]) == ALLOW
    assert answer(program, numbers["kill"], arch=0x40000003) == KILL_PROCESS


def test_what_refuses_outweighs_what_asks() -> None:
    assert EPERM < ASK < ALLOW  # the kernel takes the lowest answer of all filters
