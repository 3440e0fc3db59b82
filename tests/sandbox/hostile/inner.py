# ruff: noqa: E501 - programs keep the shape in which people write them
"""From within the interpreter: what the sandbox keeps in this very process, what stays for the next test, what breaks it."""

from tests.sandbox.programs import Hostile

INNER = [
    Hostile(
        "inner_gc_objects",
        "search every object of the interpreter for other programs, tests and secrets",
        """
import gc
gc.unfreeze()
word = b'canary-' + b'token'
for o in gc.get_objects():
    if type(o) is dict and o is not globals() and '_fields' not in o and any(type(k) is str and k in ('expected', 'run_token', 'answers') for k in list(o)): breach('dict', list(o)[:5])
    if type(o).__name__ in ('RunSpec', 'Executor', 'Worker', 'Reporter', 'Settings'): breach(type(o))
for o in gc.get_objects():
    for r in gc.get_referents(o):
        if r not in (word, word.decode()) and (type(r) is bytes and word in r or type(r) is str and word.decode() in r): breach(r[:60])
""",
    ),
    Hostile(
        "inner_proc_self",
        "write its own memory, maps and ids by way of /proc",
        """
for path in ('/proc/self/mem', '/proc/thread-self/mem', '/proc/%d/mem' % os.getpid(), '/proc/self/uid_map', '/proc/self/setgroups', '/proc/self/timerslack_ns', '/proc/self/oom_score_adj', '/proc/self/attr/current', '/proc/self/clear_refs', '/proc/self/coredump_filter', '/proc/self/comm', '/proc/self/sched', '/proc/self/autogroup'):
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR): attempt(path, os.open, path, flags)
for path in ('/proc/self/maps', '/proc/self/pagemap', '/proc/self/syscall', '/proc/self/stack', '/proc/self/status', '/proc/self/cgroup', '/proc/self/mountinfo', '/proc/self/task'): attempt(path, lambda: open(path).read(10)); attempt(path, os.listdir, path)
""",
    ),
    Hostile(
        "inner_userfaultfd",
        "calls of the kernel that people have escaped with",
        """
for number in (323, 425, 426, 427, 321, 298, 250, 248, 249, 303, 304, 272, 308, 155, 165, 428, 429, 430, 431, 432, 433, 442, 447, 448, 449, 450, 451, 452, 453, 454, 457, 458, 459, 460, 461):
    for a in (0, 1, 4, 0xffffffff):
        attempt('nr %d' % number, syscall, number, a, 0, 0, 0, 0, 0)
""",
    ),
    Hostile(
        "inner_handles",
        "leases, notifications, locks and owners on what it has open",
        """
import fcntl
try: f = open('/dev/null')
except OSError: f = sys.stdin
for command in (8, 10, 15, 1024, 1026, 1031, 1033, 1036, 1038, 36, 37, 38):
    for fd in (0, 1, 2, 4, f.fileno()): attempt('fcntl %d' % command, fcntl.fcntl, fd, command, 1)
for fd in (0, 1, f.fileno()): fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
for fd in (0, 1, 2, 4): attempt('fchmod', os.fchmod, fd, 0o777); attempt('fchown', os.fchown, fd, 0, 0); attempt('setxattr', os.setxattr, fd, 'user.x', b'x')
attempt('truncate input', os.ftruncate, 0, 0); attempt('read output', os.pread, 1, 10, 0); attempt('write input', os.write, 0, b'x')
attempt('punch', syscall, 285, 1, 3, 0, 4096); attempt('truncate output', os.ftruncate, 1, 1 << 40)
""",
    ),
    Hostile(
        "inner_output_flags",
        "take the append flag off its output and write far out",
        """
import fcntl
fcntl.fcntl(1, fcntl.F_SETFL, 0)
print('x' * 10, flush=True)
os.lseek(1, (1 << 40), 0)
try: os.write(1, b'far')
except OSError: pass
""",
        must="crashed output_limit",
    ),
    Hostile(
        "inner_faulthandler",
        "timers and handlers that fire when the test is over",
        """
import faulthandler, signal, threading
faulthandler.enable(sys.stdout)
faulthandler.dump_traceback_later(0.05, repeat=True, file=sys.stdout)
faulthandler.register(signal.SIGUSR1, file=sys.stdout)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001); signal.signal(signal.SIGALRM, lambda *a: None)
signal.setitimer(signal.ITIMER_PROF, 0.01); signal.signal(signal.SIGPROF, signal.SIG_IGN)
threading.Timer(30, lambda: breach('later')).start()
""",
        must="time_limit finished crashed output_limit",
    ),
    Hostile(
        "inner_async_exception",
        "throw exceptions into the sandbox's own frames",
        """
import threading, time
main = threading.main_thread().ident
def work():
    for _ in range(200):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(KeyboardInterrupt)); time.sleep(0.001)
threading.Thread(target=work, daemon=True).start()
""",
        must="finished crashed time_limit",
    ),
    Hostile(
        "inner_hooks",
        "trace, profile and audit whatever runs after it",
        """
import gc
def spy(*a):
    f = sys._getframe(1)
    for k in ('expected', 'accept', 'answers'):
        if k in f.f_locals: breach(k)
    return spy
sys.settrace(spy); sys.setprofile(spy); sys.addaudithook(lambda n, a: None); gc.callbacks.append(lambda *a: None)
import builtins, atexit
builtins.__import__ = lambda *a, **k: breach('import') if a[0] == 'expected' else None
atexit.register(spy)
""",
        must="finished crashed",
    ),
    Hostile(
        "inner_broken_interpreter",
        "overwrite objects that the interpreter shares with the sandbox's code",
        """
import os as o
for name in ('read', 'write', '_exit', 'pread', 'close', 'dup2', 'lseek'): setattr(o, name, lambda *a, **k: b'f\\0')
for module in list(sys.modules.values()):
    for name in ('serve', 'decide', 'wind_up', 'fresh_main', 'write_frame'):
        if hasattr(module, name): setattr(module, name, lambda *a, **k: True)
sys.modules.clear()
ctypes.memset(id(sys.stdout) + 16, 255, 64)
""",
        must="finished crashed time_limit",
    ),
    Hostile(
        "inner_code_bombs",
        "bytes that are no code, as code",
        """
import marshal, random, types
r = random.Random(5)
f = (lambda: 0).__code__
for _ in range(50):
    try: eval(f.replace(co_code=bytes(r.randrange(256) for _ in range(40)), co_stacksize=5))
    except BaseException: pass
""",
        must="finished crashed time_limit memory_limit",
    ),
    Hostile(
        "inner_pickle_bomb",
        "small texts that run_child: pickle, zip, regular expressions, formats",
        """
import zlib
for f in (lambda: zlib.decompress(zlib.compress(bytes(1 << 28))), lambda: '%2147483647d' % 1, lambda: '{:>2147483647}'.format(1), lambda: b'x' * (1 << 40), lambda: [0] * (1 << 40), lambda: int('9' * 4000) ** 999999):
    try: f(); breach('it fits')
    except (MemoryError, ValueError, OverflowError): pass
""",
        must="memory_limit time_limit finished",
    ),
    Hostile(
        "inner_last_words",
        "a destructor that writes, waits and raises at the very end",
        """
import time
class A:
    def __del__(self):
        for fd in range(3, 64):
            try: os.write(fd, b'f\\0' * 100)
            except OSError: pass
        time.sleep(0.05); raise SystemExit(0)
a = A(); b = A(); a.b, b.a = b, a
sys.exit(3)
""",
        must="crashed",
    ),
    Hostile(
        "inner_surrogates",
        "text that can't be encoded, and too much of it, as output, error and name",
        """
class \u00c4(Exception):
    def __str__(self): return '\\udcff\\ud800' * 1000
    __repr__ = __str__
sys.stderr.write('\\udcff\\0\\x1b[2J' * 5000)
raise \u00c4
""",
        must="crashed",
    ),
    Hostile(
        "inner_stop_group",
        "stop itself, its group, its session",
        """
import signal
attempt('group', os.killpg, os.getpgrp(), signal.SIGSTOP); attempt('setsid', os.setsid); attempt('setpgid', os.setpgid, 0, 0); attempt('tcsetpgrp', os.tcsetpgrp, 0, os.getpid())
os.kill(os.getpid(), signal.SIGSTOP)
""",
        must="time_limit",
    ),
]
