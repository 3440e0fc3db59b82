# ruff: noqa: E501 - programs keep the shape in which people write them
"""Making processes, reaching other processes, staying behind."""

from tests.sandbox.programs import Hostile

PROCESSES = [
    Hostile("fork", "fork once", "attempt('fork', os.fork)"),
    Hostile(
        "fork_bomb",
        "fork without end",
        """
n = 0
for _ in range(2000):
    try:
        if os.fork() == 0:
            while True: pass
        n += 1
    except OSError: pass
if n: breach('forked', n)
""",
    ),
    Hostile(
        "vfork_raw",
        "vfork and fork by number",
        """
for nr in (57, 58): attempt('nr %d' % nr, syscall, nr)
""",
    ),
    Hostile("clone_raw", "clone without CLONE_THREAD", "attempt('clone', syscall, 56, 17, 0, 0, 0, 0)"),
    Hostile(
        "clone3_raw",
        "clone3 with its flags hidden in memory",
        """
import struct
b = ctypes.create_string_buffer(struct.pack('<11Q', 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88)
attempt('clone3', syscall, 435, b, 88)
""",
    ),
    Hostile("posix_spawn", "spawn a program", "attempt('spawn', os.posix_spawn, '/bin/true', ['true'], {})"),
    Hostile(
        "subprocess_run",
        "run a shell",
        """
import subprocess
for c in (['/bin/sh','-c','echo hi'], ['ls'], [sys.executable, '-c', 'print(1)']):
    attempt('run', lambda: subprocess.run(c, capture_output=True, timeout=1))
""",
    ),
    Hostile(
        "os_system",
        "os.system and popen",
        """
r = os.system('true')
if r == 0: breach('system')
attempt('popen', lambda: os.popen('echo hi').read(), ok=bool)
""",
    ),
    Hostile(
        "libc_system",
        "system(3) by ctypes",
        """
if libc.system(b'true') == 0: breach('libc.system')
""",
    ),
    Hostile(
        "execve",
        "replace itself by another program",
        """
for p in ('/bin/sh', '/usr/bin/env', sys.executable): attempt('exec', os.execv, p, [p])
""",
    ),
    Hostile(
        "execveat_memfd",
        "execute from a memory file",
        """
attempt('memfd', syscall, 319, b'x', 0)
attempt('execveat', syscall, 322, 0, b'', None, None, 0x1000)
""",
    ),
    Hostile(
        "exec_suid",
        "execute a setuid program",
        """
for p in ('/bin/su', '/usr/bin/passwd', '/usr/bin/sudo', '/bin/mount', '/usr/bin/newgrp'):
    attempt('suid', os.execv, p, [p])
""",
    ),
    Hostile(
        "multiprocessing_pool",
        "a pool of workers",
        """
import multiprocessing as mp
attempt('pool', lambda: mp.Pool(2).map(abs, [1, 2]))
""",
    ),
    Hostile(
        "process_pool_executor",
        "concurrent.futures with processes",
        """
from concurrent.futures import ProcessPoolExecutor
attempt('executor', lambda: list(ProcessPoolExecutor(2).map(abs, [1, 2])))
""",
    ),
    Hostile(
        "double_fork_daemon",
        "leave a daemon behind",
        """
def f():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True: pass
        os._exit(0)
attempt('daemon', f)
attempt('setsid', os.setsid); attempt('setpgid', os.setpgid, 0, 0)
""",
    ),
    Hostile(
        "thread_bomb",
        "start 3,000 threads",
        """
import threading
ev = threading.Event(); n = 0
try:
    for _ in range(3000):
        threading.Thread(target=ev.wait, daemon=True).start(); n += 1
except RuntimeError: pass
ev.set()
if n > 1500: breach('threads', n)
""",
        must="finished crashed memory_limit",
    ),
    Hostile(
        "thread_burn",
        "burn CPU in many threads",
        """
import threading
def burn():
    while True: pass
for _ in range(8): threading.Thread(target=burn).start()
""",
        must="time_limit",
    ),
    Hostile(
        "thread_left_behind",
        "leave a daemon thread running after the end",
        """
import threading, time
def work():
    while True: time.sleep(0.001)
threading.Thread(target=work, daemon=True).start()
print('done')
""",
    ),
    Hostile(
        "kill_runner",
        "kill runner, supervisor, init",
        """
for p in (1, os.getppid(), {{RUNNER_PID}}):
    for s in (9, 15, 19, 0): attempt('kill', os.kill, p, s)
""",
    ),
    Hostile(
        "kill_everybody",
        "kill(-1), kill(0), process groups",
        """
attempt('kill -1', os.kill, -1, 9); attempt('kill 0', os.kill, 0, 9)
attempt('killpg', os.killpg, os.getpgid(0), 9); attempt('killpg parent', os.killpg, os.getppid(), 9)
""",
    ),
    Hostile(
        "tkill_tgkill",
        "signal threads of others by number",
        """
for p in (1, os.getppid(), {{RUNNER_PID}}):
    attempt('tkill', syscall, 200, p, 9); attempt('tgkill', syscall, 234, p, p, 9)
    attempt('sigqueue', syscall, 129, p, 9, ctypes.create_string_buffer(128)); attempt('tgsigqueue', syscall, 297, p, p, 9, ctypes.create_string_buffer(128))
""",
    ),
    Hostile(
        "pidfd",
        "signal and rob others through a pidfd",
        """
for p in (1, os.getppid(), {{RUNNER_PID}}):
    fd = attempt('pidfd_open', syscall, 434, p, 0)
    attempt('pidfd_send_signal', syscall, 424, fd or 0, 9, None, 0)
    attempt('pidfd_getfd', syscall, 438, fd or 0, 0, 0)
""",
    ),
    Hostile(
        "ptrace",
        "trace parent and runner",
        """
for p in (1, os.getppid(), {{RUNNER_PID}}):
    attempt('attach', syscall, 101, 16, p, 0, 0); attempt('seize', syscall, 101, 0x4206, p, 0, 0)
attempt('traceme', syscall, 101, 0, 0, 0, 0)
""",
    ),
    Hostile(
        "process_vm",
        "read and write others' memory",
        """
b = ctypes.create_string_buffer(64)
class V(ctypes.Structure): _fields_ = [('b', ctypes.c_void_p), ('n', ctypes.c_size_t)]
v = V(ctypes.addressof(b), 8)
for p in (os.getppid(), {{RUNNER_PID}}):
    for nr in (310, 311): attempt('vm', syscall, nr, p, ctypes.byref(v), 1, ctypes.byref(v), 1, 0)
""",
    ),
    Hostile(
        "kcmp_madvise",
        "inspect or page out other processes",
        """
attempt('kcmp', syscall, 312, os.getpid(), os.getppid(), 0, 0, 0)
attempt('process_madvise', syscall, 440, 0, 0, 0, 0, 0); attempt('process_mrelease', syscall, 448, 0, 0)
""",
    ),
    Hostile(
        "prlimit_runner",
        "lower the runner's limits",
        """
for p in (1, os.getppid(), {{RUNNER_PID}}):
    b = (ctypes.c_ulong * 2)(1, 1)
    attempt('prlimit', syscall, 302, p, 0, b, None)
""",
    ),
    Hostile(
        "raise_own_limits",
        "raise its own limits",
        """
import resource as r
for k in (r.RLIMIT_AS, r.RLIMIT_CPU, r.RLIMIT_FSIZE, r.RLIMIT_NPROC, r.RLIMIT_NOFILE, r.RLIMIT_CORE):
    soft, hard = r.getrlimit(k)
    if hard == r.RLIM_INFINITY: breach('no hard limit', k); continue
    attempt('raise', r.setrlimit, k, (hard + 1, hard + 1))
""",
    ),
    Hostile(
        "priority",
        "take the processor from others",
        """
attempt('nice', os.nice, -5)
attempt('setpriority', os.setpriority, os.PRIO_PROCESS, os.getppid(), 19)
attempt('affinity', os.sched_setaffinity, os.getppid(), {0}); attempt('affinity self', os.sched_setaffinity, 0, {0})
attempt('scheduler', os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))
attempt('ioprio', syscall, 251, 1, 0, 0)
""",
    ),
    Hostile(
        "oom_score",
        "make the kernel spare it",
        """
attempt('oom', lambda: open('/proc/self/oom_score_adj', 'w').write('-1000'))
attempt('oom runner', lambda: open('/proc/{{RUNNER_PID}}/oom_score_adj', 'w').write('1000'))
""",
    ),
    Hostile(
        "setuid_back",
        "become root or another slot",
        """
for u in (0, 1000, os.getuid() + 1, os.getuid() - 1):
    attempt('setuid', os.setuid, u, ok=lambda r: os.getuid() == u and u != START)
    attempt('setresuid', os.setresuid, u, u, u); attempt('setgid', os.setgid, u); attempt('setgroups', os.setgroups, [u])
attempt('capset', syscall, 126, ctypes.create_string_buffer(8), ctypes.create_string_buffer(24))
""".replace("START", "-7"),
    ),
    Hostile(
        "no_new_privs",
        "undo its walls through prctl",
        """
for op, v in ((38, 0), (4, 1), (1, 0), (22, 0), (36, 1), (8, 1), (28, 0), (24, 1), (47, 2)):
    attempt('prctl %d' % op, lambda: None if libc.prctl(op, v, 0, 0, 0) else 'worked', ok=bool)
""",
    ),
    Hostile(
        "sigio_owner",
        "let the kernel signal the runner",
        """
import fcntl
r, w = os.pipe()
attempt('setown', fcntl.fcntl, r, 8, {{RUNNER_PID}}); attempt('setsig', fcntl.fcntl, r, 10, 9)
attempt('setown_ex', fcntl.fcntl, r, 15, b'\\0' * 8)
""",
    ),
    Hostile("stop_itself", "stop itself for ever", "import signal; os.kill(os.getpid(), signal.SIGSTOP)", must="time_limit"),
    Hostile("kill_itself", "look like an out-of-memory kill", "os.kill(os.getpid(), 9)", must="crashed"),
    Hostile(
        "timer_signals",
        "set timers that outlive it",
        """
attempt('timer_create', syscall, 222, 0, None, ctypes.create_string_buffer(8))
attempt('timerfd', syscall, 283, 0, 0); attempt('signalfd', syscall, 289, -1, ctypes.create_string_buffer(8), 8, 0)
""",
    ),
    Hostile(
        "wait_for_others",
        "reap children of others",
        """
attempt('wait', os.wait); attempt('waitid', os.waitid, os.P_ALL, 0, os.WEXITED | os.WNOHANG)
""",
    ),
]
