# ruff: noqa: E501 - programs keep the shape in which people write them
"""Misusing how a child comes into the world: born behind the filter, it may do a few things once to become a program."""

from tests.sandbox.programs import Hostile

BIRTH = [
    Hostile(
        "stem_clone",
        "fork in the one way in which the sandbox itself does",
        """
flags = 0x8000 | 0x1000000 | 0x200000 | 17
for more in (0, 0x100, 0x200, 0x400, 0x4000, 0x80000000, 0x100000000): attempt('clone %x' % more, syscall, 56, flags | more, 0, 0, 0, 0)
for f in (0x8000 | 17, 0x8000, 0x8011 | 0x1000000, 0x8011 | 0x200000): attempt('clone %x' % f, syscall, 56, f, 0, 0, 0, 0)
""",
    ),
    Hostile(
        "stem_clone_flood",
        "have the supervisor asked without end, by many threads",
        """
import threading, time
end = time.monotonic() + 0.4
def work():
    while time.monotonic() < end:
        try: syscall(56, 0x8000 | 0x1000000 | 0x200000 | 17, 0, 0, 0, 0); breach('forked')
        except OSError: pass
        try: os.kill(os.getppid(), 0); breach('signal')
        except OSError: pass
ts = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in ts]; [t.join() for t in ts]
""",
        must="finished time_limit",
    ),
    Hostile(
        "stem_kill_siblings",
        "signal the processes that were started around it",
        """
import signal
own = os.getpid()
for pid in [p for d in range(1, 40) for p in (own - d, own + d)] + [0, -1, -own, os.getppid(), os.getpgrp(), 1]:
    for number in (0, signal.SIGSTOP, signal.SIGKILL): attempt('kill %d' % pid, os.kill, pid, number)
    attempt('tgkill %d' % pid, syscall, 234, pid, pid, 9)
    attempt('high half %d' % pid, syscall, 62, (1 << 32) | (pid & 0xffffffff), 9)
attempt('tgkill of another thread group', syscall, 234, own - 1, own, 9)
""",
    ),
    Hostile(
        "stem_ids",
        "take on other ids with the calls that a child needed",
        """
own = os.getuid()
for name in ('setresuid', 'setresgid'):
    for ids in ((0, 0, 0), (own + 1,) * 3, (-1, 0, -1), (own, 0, own), (own, own, 0)): attempt('%s %r' % (name, ids), getattr(os, name), *ids)
for f, a in ((os.setuid, 0), (os.setgid, 0), (os.seteuid, 0), (os.setegid, 0), (os.setgroups, [0]), (os.setgroups, [1000])): attempt(f.__name__, f, a)
attempt('setfsuid', syscall, 122, 0, ok=lambda r: syscall(122, 0) == 0 and own != 0)
attempt('setreuid', os.setreuid, 0, 0); attempt('capset', syscall, 126, ctypes.create_string_buffer(64), ctypes.create_string_buffer(64))
if os.getuid() != own or os.geteuid() != own: breach('ids', os.getresuid())
""",
    ),
    Hostile(
        "stem_prctl",
        "outlive the supervisor, become dumpable or traceable",
        """
for option, value in ((1, 0), (1, 17), (4, 1), (4, 2), (36, 1), (0x59616d61, -1), (35, 1), (24, 0), (8, 1), (28, 0), (22, 1), (41, 1), (47, 1), (53, 0)):
    attempt('prctl %d %d' % (option, value), syscall, 157, option, value, 0, 0, 0)
if syscall(157, 3, 0, 0, 0, 0) == 1: breach('dumpable')
""",
    ),
    Hostile(
        "stem_receive",
        "receive descriptors where a child received its job",
        """
import socket, fcntl, array
a, b = socket.socketpair()
b.send(b'x' * 20)
attempt('dup2 high', os.dup2, a.fileno(), 1000); attempt('dupfd high', fcntl.fcntl, a.fileno(), fcntl.F_DUPFD, 1000)
attempt('recvmsg', a.recvmsg, 1, 100)
attempt('recvmsg control', lambda: socket.socket(fileno=os.dup(4)).recvmsg(1, 100, socket.MSG_DONTWAIT))
attempt('recvmsg 1000', lambda: socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, 1000).recvmsg(100, 100))
attempt('recvmmsg', syscall, 299, a.fileno(), ctypes.create_string_buffer(256), 1, 0, 0)
for fd in (3, 5, 6, 7, *range(27, 2048)):
    try: os.fstat(fd)
    except OSError: continue
    if fd > 26: breach('open', fd)
""",
    ),
    Hostile(
        "stem_listener",
        "listen to calls of its own with another filter",
        """
import struct
code = struct.pack('<HBBI', 6, 0, 0, 0x7fc00000)
b = ctypes.create_string_buffer(code, len(code)); h = ctypes.create_string_buffer(struct.pack('<HxxxxxxQ', 1, ctypes.addressof(b)), 16)
for flags in (0, 1, 2, 4, 8, 16, 32, 8 | 16): attempt('seccomp %d' % flags, syscall, 317, 1, flags, h)
attempt('notif sizes', syscall, 317, 3, 0, ctypes.create_string_buffer(16)); attempt('strict', syscall, 317, 0, 0, None)
for request in (0xC0502100, 0xC0182101, 0x40082102, 0x40182103): attempt('ioctl', syscall, 16, 4, request, ctypes.create_string_buffer(128))
""",
    ),
    Hostile(
        "stem_cpu_and_stop",
        "slow down or stop what it was forked from",
        """
own = os.getpid()
for pid in [own - d for d in range(1, 20)] + [os.getppid()]:
    attempt('affinity', os.sched_setaffinity, pid, {0}); attempt('scheduler', os.sched_setscheduler, pid, 5, os.sched_param(0))
    attempt('priority', os.setpriority, 0, pid, 19); attempt('prlimit', syscall, 302, pid, 0, ctypes.create_string_buffer(16), None)
    attempt('sched_setattr', syscall, 314, pid, ctypes.create_string_buffer(56), 0); attempt('ioprio', syscall, 251, 1, pid, 3 << 13)
    attempt('sigqueue', syscall, 129, pid, 9, ctypes.create_string_buffer(128)); attempt('tgsigqueue', syscall, 297, pid, pid, 9, ctypes.create_string_buffer(128))
    attempt('move_pages', syscall, 279, pid, 0, None, None, None, 0); attempt('robust list', syscall, 274, pid, ctypes.create_string_buffer(8), ctypes.create_string_buffer(8))
    attempt('pidfd', syscall, 434, pid, 0); attempt('process_madvise', syscall, 440, pid, None, 0, 0, 0); attempt('timer', syscall, 222, 0, None, None)
""",
    ),
]
