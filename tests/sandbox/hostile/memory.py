# ruff: noqa: E501 - programs keep the shape in which people write them
"""Using up memory."""

from tests.sandbox.programs import Hostile

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
        "mem_shared_given_back",
        "occupy shared memory that madvise takes out of every count",
        """
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
SIZE, held = 16 << 20, 0
for shared in (0x01, 0x03):
    for _ in range(16):
        p = libc.mmap(None, SIZE, 3, shared | 0x20, -1, 0)
        if p in (None, ctypes.c_void_p(-1).value): break
        ctypes.memset(p, 1, SIZE); libc.madvise(ctypes.c_void_p(p), ctypes.c_size_t(SIZE), 4); held += SIZE
if held > 96 << 20: breach(held, 'bytes beyond the limit')
""",
        "finished memory_limit crashed",
    ),
    Hostile(
        "mem_shared_unmapped",
        "occupy shared memory and keep a single page of each mapping",
        """
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
SIZE, held = 16 << 20, 0
zero = -1
try: zero = os.open('/dev/zero', os.O_RDWR)
except OSError:
    try: zero = os.open('/dev/zero', os.O_RDONLY)
    except OSError: pass
for fd, flags, protection in ((-1, 0x21, 3), (-1, 0x23, 3), (zero, 0x01, 3), (zero, 0x01, 1), (zero, 0x21, 3)):
    for _ in range(16):
        p = libc.mmap(None, SIZE, protection, flags, fd, 0)
        if p in (None, ctypes.c_void_p(-1).value): break
        for at in range(0, SIZE, 4096):
            if protection & 2: ctypes.memset(p + at, 1, 1)
            else: ctypes.string_at(p + at, 1)
        libc.munmap(ctypes.c_void_p(p + 4096), ctypes.c_size_t(SIZE - 4096)); held += SIZE
if held > 96 << 20: breach(held, 'bytes beyond the limit')
""",
        "finished memory_limit crashed",
    ),
    Hostile(
        "mem_mmap_by_default",
        "occupy memory by Python's own way to map it, and keep a page of each",
        """
import mmap
held, keep = 0, []
try:
    for _ in range(16):
        m = mmap.mmap(-1, 16 << 20); keep.append(m)
        m.write(b'x' * (16 << 20)); m.madvise(mmap.MADV_DONTNEED)
        held += (16 << 20) if m[0] else 0
except (OSError, ValueError): pass
if held > 96 << 20: breach(held, 'bytes beyond the limit')
""",
        "finished memory_limit crashed",
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
def run_child():
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
