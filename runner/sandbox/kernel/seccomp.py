"""Which system calls a program may make: an allow-list, refined by argument, compiled to a kernel filter.

Any other call fails with EPERM, or with ENOSYS if it is so new that libc has a fallback. Filters see numbers and not what
pointers point at, so calls that pass their arguments in memory (clone3, openat2) do not exist for programs.
"""

import ctypes
import errno
import struct
from dataclasses import dataclass
from enum import StrEnum

from runner.sandbox.kernel import bpf, syscalls
from runner.sandbox.kernel.bpf import (
    ALLOW,
    ANY_BIT,
    ASK,
    AT_LEAST,
    EQUAL,
    GREATER,
    KILL_PROCESS,
    Assembler,
    high,
    low,
    refuse,
)
from runner.sandbox.kernel.syscall_numbers import NUMBERS
from runner.sandbox.limits import Allow


class OpenMode(StrEnum):
    """How the filter treats opening files."""

    #: Landlock decides about every access.
    by_landlock = "files-by-landlock"
    #: Files can be opened for reading only; Landlock (an old version) decides which.
    read_only = "read-only"
    #: Nothing can be opened; every importable module is imported beforehand.
    no_open = "no-open"


FOR_JUDGES = ("recvmsg",)
"""What test code of a benchmark may do in addition: receive the connection to the next program."""

FOR_PROCESSES = ("fork", "vfork", "wait4", "waitid", "setsid", "setpgid")
_FILE_CALLS = """
ftruncate truncate fsync fdatasync fallocate mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat
symlink symlinkat
"""
FOR_FILES = tuple(_FILE_CALLS.split())
"""Landlock decides where."""
FOR_OWN_FILES = ("chmod", "fchmod", "fchmodat", "utime", "utimes", "utimensat")
"""Landlock does not cover these, so they are allowed only if nothing else belongs to the user id."""

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_BIT = 0x40000000
FIRST_NEW_CALL = 424
OWN_PID = 0x7EADBEEF
"""Placeholder for the child's pid until `Filter.install` knows it."""

_HARMLESS = """
read write readv writev pread64 pwrite64 preadv pwritev lseek close close_range dup dup2 dup3
stat fstat lstat newfstatat fstatat statx access faccessat faccessat2 readlink readlinkat getdents64
getcwd chdir fchdir statfs fstatfs umask
mmap munmap mremap mprotect madvise brk msync membarrier
futex set_robust_list get_robust_list rseq set_tid_address exit exit_group gettid getpid getppid sched_yield
sched_getaffinity sched_getparam sched_getscheduler sched_get_priority_max sched_get_priority_min getcpu
rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack rt_sigpending rt_sigtimedwait rt_sigsuspend restart_syscall
pause alarm setitimer getitimer
clock_gettime clock_getres gettimeofday time nanosleep clock_nanosleep times getrusage
getuid geteuid getgid getegid getgroups getresuid getresgid getpgrp getpgid getsid uname sysinfo getrlimit getrandom
poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd eventfd2 pipe pipe2
recvfrom shutdown getsockopt getsockname getpeername fadvise64 flock
"""
ALWAYS = tuple(_HARMLESS.split())

SHARED_ANONYMOUS = 0x01 | 0x20
"""MAP_SHARED (or MAP_SHARED_VALIDATE) and MAP_ANONYMOUS."""
CLONE_THREAD = 0x00010000
CLONE_BY_TEMPLATE = 0x00008000 | 0x01000000 | 0x00200000 | 17
"""PARENT, CHILD_SETTID, CHILD_CLEARTID and SIGCHLD: forks a sibling, as libc forks. The only clone that a template makes."""
SET_PDEATHSIG, SIGKILL, SET_DUMPABLE = 1, 9, 4
CLONE_NEW_ANYTHING = 0x7E020000
OPEN_FOR_WRITING = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20000000
AF_UNIX, SOCK_STREAM = 1, 1
# DUPFD GETFD SETFD GETFL SETFL GETLK SETLK SETLKW DUPFD_CLOEXEC GETPIPE_SZ GET_SEALS: no owner for SIGIO, no growing pipes
FCNTL = (0, 1, 2, 3, 4, 5, 6, 7, 1030, 1032, 1034)
# TCGETS TIOCGWINSZ FIONCLEX FIOCLEX FIONREAD FIONBIO
IOCTL = (0x5401, 0x5413, 0x5450, 0x5451, 0x541B, 0x5421)
# SET_NAME GET_NAME GET_DUMPABLE GET_NO_NEW_PRIVS CAPBSET_READ
PRCTL = (15, 16, 3, 39, 23)


@dataclass(frozen=True)
class Inherited:
    """What a child that starts inside the filter may do to become a program's process; useless to a program.

    What depends on the caller is left to the supervisor, see `build_gate`.
    """

    uid: int
    """The user id that it may switch to, -1 for none."""
    jobs_fd: int
    """The descriptor on which it may receive others."""


@dataclass(frozen=True)
class Rules:
    """What a filter allows in addition to the list."""

    open_mode: OpenMode
    extra: tuple[str, ...] = ()
    processes: bool = False
    confined: bool = False
    """With processes: signals cannot reach other processes (own user id, or confined by Landlock), so all are allowed."""
    inherited: "Inherited | None" = None
    """Set for a filter that is installed before the fork."""

    @classmethod
    def for_profile(cls, open_mode: OpenMode, allow: int, own_uid: bool, confined: bool) -> "Rules":
        """Returns the rules of a profile; programs may be executed only if Landlock decides which."""
        extra: tuple[str, ...] = ()
        if allow & Allow.PROCESSES:
            extra += FOR_PROCESSES + (() if open_mode is OpenMode.no_open else ("execve", "arch_prctl"))
        if allow & Allow.FILES:
            extra += FOR_FILES + (FOR_OWN_FILES if own_uid else ())
        return cls(open_mode, extra, bool(allow & Allow.PROCESSES), own_uid or confined)


def build(arch: str, rules: Rules) -> bytes:
    """Returns the filter program for an architecture; `OWN_PID` must still be replaced."""
    return _Policy(arch, rules).program()


def build_gate(arch: str) -> bytes:
    """Returns the filter in front of the inherited one: it refers a template's forks, and signals, to the supervisor."""
    numbers, out = NUMBERS[arch], Assembler()
    out.load(bpf.ARCHITECTURE)
    out.test(EQUAL, AUDIT_ARCH[arch], "arch", None)
    out.answer(KILL_PROCESS)
    out.label("arch")
    out.load(bpf.NUMBER)
    for name in ("kill", "tgkill"):
        out.test(EQUAL, numbers[name], "ask", None)
    out.test(EQUAL, numbers["clone"], None, "allow")
    out.load(low(0))
    out.test(EQUAL, CLONE_BY_TEMPLATE, "ask", None)
    out.label("allow")
    out.answer(ALLOW)
    out.label("ask")
    out.answer(ASK)
    return out.assemble()


class _Policy:
    def __init__(self, arch: str, rules: Rules) -> None:
        self.arch, self.rules, self.open_mode = arch, rules, rules.open_mode
        self.allowed = (*ALWAYS, *rules.extra)
        self.numbers = NUMBERS[arch]
        self.out = Assembler()

    def program(self) -> bytes:
        out = self.out
        out.load(bpf.ARCHITECTURE)
        out.test(EQUAL, AUDIT_ARCH[self.arch], "arch", None)
        out.answer(KILL_PROCESS)
        out.label("arch")
        out.load(bpf.NUMBER)
        if self.arch == "x86_64":
            out.test(AT_LEAST, X32_BIT, None, "native")
            out.answer(refuse(errno.ENOSYS))
            out.label("native")
        self._process_calls()
        if not self.rules.processes:
            self._memory_calls()
        self._file_calls()
        self._socket_calls()
        out.load(bpf.NUMBER)
        self._allowed_ranges(sorted(self.numbers[name] for name in self.allowed if name in self.numbers))
        return out.assemble()

    def _case(self, name: str) -> str | None:
        """Starts the rules of one call; returns the label after them, or None if the call does not exist."""
        if name not in self.numbers:
            return None
        after = self.out.new_label()
        self.out.test(EQUAL, self.numbers[name], None, after)
        return after

    def _allow_or_refuse(self, refused: str, error: int, after: str) -> None:
        """Ends the rules of one call: allowed here, refused from the label on."""
        self.out.answer(ALLOW)
        self.out.label(refused)
        self.out.answer(refuse(error))
        self.out.label(after)

    def _always(self, name: str, answer: int) -> None:
        if after := self._case(name):
            self.out.answer(answer)
            self.out.label(after)

    def _one_of(self, name: str, argument: int, values: tuple[int, ...], otherwise: int) -> None:
        if after := self._case(name):
            allowed = self.out.new_label()
            self.out.load(low(argument))
            for value in values:
                self.out.test(EQUAL, value, allowed, None)
            self.out.answer(refuse(otherwise))
            self.out.label(allowed)
            self.out.answer(ALLOW)
            self.out.label(after)

    def _process_calls(self) -> None:
        out = self.out
        if after := self._case("clone"):
            refused = out.new_label()
            out.load(low(0))
            allowed = out.new_label()
            if self.rules.inherited:
                out.test(EQUAL, CLONE_BY_TEMPLATE, allowed, None)
            out.test(ANY_BIT, CLONE_NEW_ANYTHING, refused, None)
            if not self.rules.processes:
                out.test(ANY_BIT, CLONE_THREAD, None, refused)
            out.label(allowed)
            self._allow_or_refuse(refused, errno.EPERM, after)
        self._always("clone3", refuse(errno.ENOSYS))
        if self.rules.inherited is not None:
            self._for_children_of_a_template(self.rules.inherited)
        self._one_of("prctl", 0, PRCTL, errno.EPERM)
        self._one_of("prlimit64", 0, (0,), errno.EPERM)
        for name in ("kill", "tgkill"):
            if self.rules.inherited or (self.rules.processes and self.rules.confined):
                self._always(name, ALLOW)
            else:
                self._one_of(name, 0, (OWN_PID,), errno.EPERM)

    def _memory_calls(self) -> None:
        """Refuses shared anonymous memory: it stays occupied after a partial unmap, and no limit counts it then."""
        if after := self._case("mmap"):
            refused = self.out.new_label()
            self.out.load(low(3))
            self.out.mask(SHARED_ANONYMOUS)
            self.out.test(EQUAL, SHARED_ANONYMOUS, refused, None)
            self._allow_or_refuse(refused, errno.EPERM, after)

    def _for_children_of_a_template(self, may: Inherited) -> None:
        self._exactly("prctl", SET_PDEATHSIG, SIGKILL)
        self._exactly("prctl", SET_DUMPABLE, 0)
        if may.uid >= 0:
            self._exactly("setgroups", 0)
            for name in ("setresuid", "setresgid"):
                self._exactly(name, may.uid, may.uid, may.uid)
        self._exactly("recvmsg", may.jobs_fd)

    def _exactly(self, name: str, *arguments: int) -> None:
        """Allows a call with exactly these arguments; other rules for it may follow."""
        if after := self._case(name):
            other = self.out.new_label()
            for index, value in enumerate(arguments):
                self.out.load(low(index))
                self.out.test(EQUAL, value, None, other)
            self.out.answer(ALLOW)
            self.out.label(other)
            self.out.load(bpf.NUMBER)
            self.out.label(after)

    def _file_calls(self) -> None:
        out = self.out
        for name, flags in (("openat", 2), ("open", 1)):
            if self.open_mode is OpenMode.by_landlock:
                self._always(name, ALLOW)
            elif self.open_mode is OpenMode.no_open:
                self._always(name, refuse(errno.EACCES))
            elif after := self._case(name):
                refused = out.new_label()
                out.load(low(flags))
                out.test(ANY_BIT, OPEN_FOR_WRITING, refused, None)
                self._allow_or_refuse(refused, errno.EACCES, after)
        self._always("openat2", refuse(errno.ENOSYS))
        self._one_of("fcntl", 1, FCNTL, errno.EPERM)
        self._one_of("ioctl", 1, IOCTL, errno.ENOTTY)

    def _socket_calls(self) -> None:
        out = self.out
        # Only what asyncio needs for its self-pipe: a datagram pair could send to any abstract address.
        if after := self._case("socketpair"):
            refused = out.new_label()
            out.load(low(0))
            out.test(EQUAL, AF_UNIX, None, refused)
            out.load(low(1))
            out.mask(0xF)
            out.test(EQUAL, SOCK_STREAM, None, refused)
            self._allow_or_refuse(refused, errno.EACCES, after)
        if after := self._case("sendto"):
            refused = out.new_label()
            for half in (low(4), high(4)):
                out.load(half)
                out.test(EQUAL, 0, None, refused)
            self._allow_or_refuse(refused, errno.EACCES, after)

    def _allowed_ranges(self, numbers: list[int]) -> None:
        ranges: list[tuple[int, int]] = []
        for number in numbers:
            if ranges and ranges[-1][1] == number - 1:
                ranges[-1] = (ranges[-1][0], number)
            else:
                ranges.append((number, number))
        self._search(ranges)

    def _search(self, ranges: list[tuple[int, int]]) -> None:
        """Emits a balanced decision tree, so that every call costs only a few comparisons."""
        out = self.out
        if len(ranges) > 3:
            middle = len(ranges) // 2
            upper, lower = out.new_label(), out.new_label()
            out.test(AT_LEAST, ranges[middle][0], None, lower)
            out.jump(upper)
            out.label(lower)
            self._search(ranges[:middle])
            out.label(upper)
            self._search(ranges[middle:])
            return
        for first, last in ranges:
            after = out.new_label()
            out.test(AT_LEAST, first, None, after)
            out.test(GREATER, last, after, None)
            out.answer(ALLOW)
            out.label(after)
        old = out.new_label()
        out.test(AT_LEAST, FIRST_NEW_CALL, None, old)
        out.answer(refuse(errno.ENOSYS))
        out.label(old)
        out.answer(refuse(errno.EPERM))


class Filter:
    """A filter prepared in memory before the fork, so that installing it in the child takes two stores and one call."""

    def __init__(self, program: bytes, flags: int = 0) -> None:
        self._buffer = ctypes.create_string_buffer(program, len(program))
        marker = struct.pack("<I", OWN_PID)
        self._offsets = [at for at in range(4, len(program), 8) if program[at : at + 4] == marker]
        header = struct.pack("<HxxxxxxQ", len(program) // 8, ctypes.addressof(self._buffer))
        self._header = ctypes.create_string_buffer(header, len(header))
        self._set = syscalls.Call("seccomp", 1, flags, self._header)

    def install(self, own_pid: int = 0) -> int:
        """Applies the filter to the calling process, for good; returns a descriptor if a listener was requested."""
        for offset in self._offsets:
            struct.pack_into("<I", self._buffer, offset, own_pid)
        return self._set()
