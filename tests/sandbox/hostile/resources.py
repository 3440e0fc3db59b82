# ruff: noqa: E501 - programs keep the shape in which people write them
"""Using up memory, disk, output and time."""

from ..programs import Hostile

MEMORY = [
    Hostile(
        "mem_list",
        "grow a list for ever",
        "a = []\nwhile True: a.append('x' * 1000 + str(len(a)))",
        "memory_limit",
        probe=False,
    ),
    Hostile("mem_bytearray", "one block of 8 GB", "b = bytearray(8 << 30)", "memory_limit", probe=False),
    Hostile(
        "mem_touch",
        "touch 4 GB page by page",
        "b = bytearray(1)\nwhile True: b += bytes(1 << 20)",
        "memory_limit",
        probe=False,
    ),
    Hostile("mem_string_double", "double a string", "s = 'ab'\nwhile True: s += s", "memory_limit", probe=False),
    Hostile("mem_int", "an integer of billions of digits", "x = 1 << (1 << 36)", "memory_limit", probe=False),
    Hostile("mem_power_tower", "10 ** 10 ** 10", "x = 10 ** 10 ** 10", "memory_limit time_limit crashed", probe=False),
    Hostile(
        "mem_catch_and_retry",
        "swallow MemoryError and go on",
        """
a = []
while True:
    try:
        while True: a.append(bytearray(b'x' * (1 << 20)))
    except MemoryError: pass
""",
        "memory_limit",
        probe=False,
    ),
    Hostile(
        "mem_private_mmap",
        "touch anonymous mappings",
        """
import mmap
keep = []
while True:
    m = mmap.mmap(-1, 16 << 20); keep.append(m)
    for i in range(0, 16 << 20, 4096): m[i] = 1
""",
        "memory_limit",
        probe=False,
    ),
    Hostile(
        "mem_shared_mmap",
        "touch shared anonymous mappings",
        """
import mmap
keep = []
while True:
    m = mmap.mmap(-1, 16 << 20, flags=mmap.MAP_SHARED); keep.append(m)
    for i in range(0, 16 << 20, 4096): m[i] = 1
""",
        "memory_limit crashed",
        probe=False,
    ),
    Hostile(
        "mem_ctypes",
        "allocate with libc malloc and fill",
        """
import ctypes
libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p; libc.malloc.argtypes = [ctypes.c_size_t]
while True:
    p = libc.malloc(8 << 20)
    if not p: raise MemoryError
    ctypes.memset(p, 1, 8 << 20)
""",
        "memory_limit",
        probe=False,
    ),
    Hostile(
        "mem_dict",
        "a dictionary of millions",
        "d = {}\ni = 0\nwhile True:\n    d[i] = [i]; i += 1",
        "memory_limit time_limit",
        probe=False,
    ),
    Hostile(
        "mem_threads",
        "allocate in eight threads",
        """
import threading
def grow():
    a = []
    while True: a.append(bytearray(b'x' * (1 << 20)))
for _ in range(8): threading.Thread(target=grow).start()
""",
        "memory_limit crashed",
        probe=False,
    ),
    Hostile(
        "mem_memfd",
        "hide memory in memory files",
        """
n = 0
for _ in range(40):
    try: fd = syscall(319, b'x', 0)
    except OSError: break
    for _ in range(16): os.write(fd, bytes(1 << 20)); n += 1
if n: breach('memfd MiB', n)
""",
    ),
    Hostile(
        "mem_pipes",
        "hide memory in pipes",
        """
import fcntl
total = 0
try:
    for _ in range(200):
        r, w = os.pipe(); os.set_blocking(w, False)
        try: fcntl.fcntl(w, 1031, 1 << 20)
        except OSError: pass
        try:
            while True: total += os.write(w, bytes(65536))
        except BlockingIOError: pass
except OSError: pass
if total > 8 << 20: breach('pipes', total)
""",
    ),
    Hostile(
        "mem_sockets",
        "hide memory in socket buffers",
        """
import socket
total = 0
try:
    for _ in range(200):
        a, b = socket.socketpair()
        try: a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 20)
        except OSError: pass
        a.setblocking(False)
        try:
            while True: total += a.send(bytes(65536))
        except BlockingIOError: pass
except OSError: pass
if total > 96 << 20: breach('sockets', total)
""",
    ),
    Hostile(
        "mem_sysv",
        "System V shared memory, semaphores, queues",
        """
for nr, a in ((29, (0x1234, 1 << 20, 0o1777)), (64, (0x1234, 1, 0o1777)), (68, (0x1234, 0o1777)), (240, (b'/q', 0o102, 0o777, None))):
    attempt('ipc %d' % nr, syscall, nr, *a)
""",
    ),
    Hostile(
        "mem_mlock",
        "lock pages into memory",
        "attempt('mlockall', syscall, 151, 1); attempt('mlock', syscall, 149, id(object()), 1 << 20, ok=lambda r: True)",
    ),
    Hostile(
        "mem_regex",
        "a regular expression that explodes",
        "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')",
        "time_limit",
        probe=False,
    ),
    Hostile(
        "compile_bomb_fold",
        "let the compiler compute a huge constant",
        "x = " + "9**" * 3 + "9**9999999",
        "time_limit memory_limit crashed",
        probe=False,
    ),
    Hostile(
        "compile_bomb_nest",
        "nest brackets until the parser gives up",
        "x = " + "(" * 5000 + ")" * 5000,
        "crashed memory_limit",
        probe=False,
    ),
    Hostile(
        "compile_bomb_eval",
        "evaluate a huge generated source",
        "eval('+'.join(['1'] * 3_000_000))",
        "crashed memory_limit time_limit",
        probe=False,
    ),
    Hostile(
        "recursion_crash",
        "overflow the stack through C code",
        """
sys.setrecursionlimit(10**9)
class A:
    def __getattr__(self, n): return getattr(self, n)
import functools
f = functools.reduce(lambda a, _: functools.partial(a), range(10**6), print)
f()
""",
        "crashed memory_limit time_limit finished",
    ),
    Hostile(
        "recursion_endless",
        "recurse without end, limit raised",
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
        "memory_limit crashed",
        probe=False,
    ),
    Hostile("null_pointer", "crash the interpreter", "ctypes.string_at(0)", "crashed"),
    Hostile(
        "hash_collision_dict",
        "integers that collide",
        "m = 2**61 - 1\nd = {}\nfor i in range(200000): d[i * m] = i",
        "time_limit",
        probe=False,
    ),
    Hostile(
        "gc_bomb",
        "objects whose destructors make objects",
        """
class A:
    def __del__(self): keep.append(A()); keep.append(bytes(10000))
keep = []
for _ in range(10**7): A()
""",
        "memory_limit time_limit crashed",
        probe=False,
    ),
]

DISK = [
    Hostile(
        "disk_fill",
        "fill every place that may be writable",
        """
for d in ('.', '/tmp', '/dev/shm', '/var/tmp', '/run', '/dev', '/', os.path.expanduser('~'), '/dev/mqueue', '/run/lock'):
    def f():
        with open(d + '/fill', 'wb') as h:
            h.write(bytes(1 << 20))
    attempt('write ' + d, f)
""",
    ),
    Hostile(
        "disk_tempfile",
        "temporary files",
        """
import tempfile
attempt('TemporaryFile', tempfile.TemporaryFile); attempt('mkdtemp', tempfile.mkdtemp); attempt('NamedTemporaryFile', tempfile.NamedTemporaryFile)
""",
    ),
    Hostile(
        "disk_o_tmpfile",
        "a nameless file",
        """
for d in ('/tmp', '.', '/dev/shm', '/'): attempt('O_TMPFILE', os.open, d, os.O_TMPFILE | os.O_RDWR)
""",
    ),
    Hostile(
        "disk_inodes",
        "thousands of empty files and folders",
        """
for d in ('.', '/tmp', '/dev/shm'):
    for i in range(200):
        attempt('mkdir', os.mkdir, f'{d}/d{i}'); attempt('mknod', os.mknod, f'{d}/n{i}'); attempt('mkfifo', os.mkfifo, f'{d}/p{i}')
""",
    ),
    Hostile(
        "disk_sparse",
        "a sparse file of a terabyte",
        """
attempt('truncate', os.truncate, '/tmp/x', 1 << 40); attempt('ftruncate stdout', os.ftruncate, 1, 1 << 40)
attempt('fallocate', os.posix_fallocate, 1, 0, 1 << 30)
attempt('lseek+write', lambda: (os.lseek(1, 1 << 40, 0), None)[1], ok=bool)
""",
    ),
    Hostile(
        "disk_overwrite_python",
        "change interpreter, libraries, sandbox",
        """
import json, runner.sandbox as s
for f in (json.__file__, sys.executable, os.__file__, s.__file__, '/usr/lib/os-release', '/bin/sh'):
    attempt('write', lambda: open(f, 'r+b')); attempt('append', lambda: open(f, 'ab')); attempt('unlink', os.unlink, f)
    attempt('rename', os.rename, f, f + '.x'); attempt('chmod', os.chmod, f, 0o777); attempt('utime', os.utime, f); attempt('chown', os.chown, f, os.getuid(), -1)
""",
    ),
    Hostile(
        "disk_pycache",
        "plant a module for the next program",
        """
import sysconfig
for d in (*sys.path, '.', sysconfig.get_path('stdlib') + '/__pycache__'):
    attempt('plant', lambda: open(os.path.join(d, 'evil.py'), 'w'))
""",
    ),
    Hostile(
        "symlink",
        "plant links to secrets",
        """
for d in ('.', '/tmp', '/dev/shm'):
    attempt('symlink', os.symlink, '{{SECRET_FILE}}', d + '/l'); attempt('link', os.link, '{{SECRET_FILE}}', d + '/h')
""",
    ),
    Hostile(
        "mount",
        "mount, chroot, pivot, unshare",
        """
attempt('mount', syscall, 165, b'none', b'/tmp', b'tmpfs', 0, None); attempt('umount', syscall, 166, b'/tmp', 0)
attempt('chroot', os.chroot, '/tmp'); attempt('pivot_root', syscall, 155, b'/tmp', b'/tmp')
attempt('unshare', syscall, 272, 0x10000000); attempt('setns', syscall, 308, 0, 0); attempt('fsopen', syscall, 430, b'tmpfs', 0); attempt('open_tree', syscall, 428, -100, b'/', 1)
""",
    ),
    Hostile(
        "shm_posix",
        "leave shared memory behind",
        """
from multiprocessing import shared_memory
attempt('shm', lambda: shared_memory.SharedMemory(create=True, size=4096))
""",
    ),
    Hostile(
        "semaphore_posix",
        "leave a named semaphore behind",
        """
import multiprocessing as mp
attempt('semaphore', mp.Semaphore); attempt('lock', mp.Lock)
""",
    ),
    Hostile(
        "sqlite_shelve_dbm",
        "databases on disk",
        """
import sqlite3, shelve
attempt('sqlite', lambda: sqlite3.connect('x.db').execute('create table t(a)')); attempt('shelve', lambda: shelve.open('/tmp/x'))
""",
        must="finished crashed",
    ),
    Hostile(
        "cwd_private",
        "leave a file for the next execution",
        """
attempt('create', lambda: open('left.txt', 'w').write('x'))
if os.path.exists('left.txt'): breach('found')
""",
    ),
    Hostile(
        "xattr_acl",
        "attributes on files it can read",
        """
import json
attempt('setxattr', os.setxattr, json.__file__, 'user.x', b'1'); attempt('inotify', syscall, 294, 0); attempt('fanotify', syscall, 300, 0, 0)
attempt('quotactl', syscall, 179, 0, 0, 0, 0); attempt('sync', lambda: syscall(162))
""",
    ),
]

OUTPUT = [
    Hostile("out_flood_print", "print for ever", "while True: print('x' * 1000)", "output_limit", probe=False),
    Hostile(
        "out_flood_write",
        "write gigabytes in large blocks",
        "import os\nb = bytes(1 << 20)\nwhile True: os.write(1, b)",
        "output_limit",
        probe=False,
    ),
    Hostile(
        "out_flood_stderr",
        "flood standard error",
        "import sys\nwhile True: sys.stderr.write('x' * 10000)",
        "output_limit",
        probe=False,
    ),
    Hostile(
        "out_flood_ignore_signal",
        "ignore the signal and go on",
        """
import os, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
while True:
    try: os.write(1, b'x' * 65536)
    except OSError: break
""",
        "output_limit",
        probe=False,
    ),
    Hostile(
        "out_just_over",
        "one byte more than allowed",
        "import sys\nsys.stdout.write('x' * (256 * 1024 + 1))",
        "output_limit",
        probe=False,
    ),
    Hostile(
        "out_one_line",
        "a single endless line without newline",
        "import sys\nwhile True: sys.stdout.write('a' * 4096)",
        "output_limit",
        probe=False,
    ),
    Hostile(
        "out_exception_text",
        "an exception with a gigantic message",
        "raise ValueError('x' * (64 << 20))",
        "crashed memory_limit output_limit",
        probe=False,
    ),
    Hostile(
        "out_via_dup",
        "write through a duplicate of standard output",
        "import os\nfd = os.dup(1)\nwhile True: os.write(fd, bytes(65536))",
        "output_limit",
        probe=False,
    ),
    Hostile(
        "out_close_and_hang",
        "close standard output and sleep",
        "import os, time\nos.close(1)\ntime.sleep(100)",
        "time_limit",
        probe=False,
    ),
    Hostile(
        "out_terminal_escapes",
        "escape sequences and zero bytes on both streams",
        "import os\nos.write(1, b'\\x1b[2J\\x00\\xff\\r' * 50); os.write(2, b'\\xff\\xfe\\x1b]0;x\\x07')",
        "finished",
        probe=False,
    ),
    Hostile(
        "out_atexit_flood",
        "flood when the interpreter shuts down",
        "import atexit\ndef f():\n    while True: print('x' * 1000)\natexit.register(f)",
        "output_limit",
        probe=False,
    ),
    Hostile(
        "out_del_flood",
        "flood from a destructor",
        "class A:\n    def __del__(self):\n        import os\n        while True: os.write(1, bytes(65536))\na = A()",
        "output_limit",
        probe=False,
    ),
    Hostile(
        "out_thread_flood",
        "flood from a thread",
        "import threading, os\ndef f():\n    while True: os.write(1, bytes(65536))\nthreading.Thread(target=f).start()",
        "output_limit",
        probe=False,
    ),
]

TIME = [
    Hostile("time_loop", "loop for ever", "while True: pass", "time_limit", probe=False),
    Hostile("time_sleep", "sleep for ever", "import time\ntime.sleep(1e6)", "time_limit", probe=False),
    Hostile(
        "time_read_stdin",
        "wait for input that never comes",
        "import sys\nwhile True: sys.stdin.read()",
        "time_limit",
        probe=False,
    ),
    Hostile(
        "time_swallow",
        "swallow every exception and signal",
        """
import signal
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True:
    try:
        while True: pass
    except BaseException: pass
""",
        "time_limit",
        probe=False,
    ),
    Hostile(
        "time_block_signals",
        "block every signal",
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass",
        "time_limit",
        probe=False,
    ),
    Hostile(
        "time_deadlock",
        "dead-lock itself",
        "import threading\nl = threading.Lock(); l.acquire(); l.acquire()",
        "time_limit",
        probe=False,
    ),
    Hostile(
        "time_join_self",
        "a thread that never ends, waited for at exit",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1e6,)).start()",
        "time_limit",
        probe=False,
    ),
    Hostile(
        "time_atexit_loop",
        "loop at exit",
        "import atexit\ndef f():\n    while True: pass\natexit.register(f)",
        "time_limit",
        probe=False,
    ),
    Hostile(
        "time_del_loop",
        "loop in a destructor",
        "class A:\n    def __del__(self):\n        while True: pass\na = A()",
        "time_limit",
        probe=False,
    ),
    Hostile("time_c_loop", "loop inside C code that no signal interrupts", "sum(iter(int, 1))", "time_limit", probe=False),
    Hostile(
        "time_big_sort",
        "long computation inside one C call",
        "sorted(range(10**7), key=lambda x: -x); [0] * 10**7; 3 ** (10**7) % 7; pow(3, 10**7)",
        "time_limit memory_limit",
        probe=False,
    ),
    Hostile(
        "time_pipe",
        "read from a pipe with no writer",
        "import os\nr, w = os.pipe()\nos.read(r, 1)",
        "time_limit",
        probe=False,
    ),
    Hostile(
        "time_sigxcpu",
        "raise the CPU signal itself",
        "import os, signal\nos.kill(os.getpid(), signal.SIGXCPU)",
        "crashed",
        probe=False,
    ),
    Hostile(
        "time_sigalrm_handlers",
        "a timer storm",
        "import signal\nsignal.signal(signal.SIGALRM, lambda *a: None)\nsignal.setitimer(signal.ITIMER_REAL, 1e-5, 1e-5)\nwhile True: pass",
        "time_limit",
        probe=False,
    ),
    Hostile(
        "time_mixed_sleep", "sleep in small pieces", "import time\nwhile True: time.sleep(0.01)", "time_limit", probe=False
    ),
    Hostile(
        "time_yield", "yield the processor for ever", "import os\nwhile True: os.sched_yield()", "time_limit", probe=False
    ),
    Hostile(
        "time_clock_patch",
        "change the clock",
        "import time\ntry:\n    time.clock_settime(time.CLOCK_REALTIME, 0)\n    print('BREACH')\nexcept OSError: pass\ntime.time = lambda: 0",
        "finished",
        probe=False,
    ),
]
