# ruff: noqa: E501 - programs keep the shape in which people write them
"""The ways in which programs read and write."""

from tests.sandbox.programs import Ordinary

SUM = "print(sum(a))"

STREAMS = [
    Ordinary("input", f"n = int(input()); a = list(map(int, input().split())); {SUM}"),
    Ordinary("for_line_in_stdin", f"import sys\nlines = [l for l in sys.stdin]\na = map(int, lines[1].split()); {SUM}"),
    Ordinary("stdin_read", f"import sys\nd = sys.stdin.read().split(); a = map(int, d[1:]); {SUM}"),
    Ordinary("stdin_read_after_input", f"import sys\nn = int(input()); a = map(int, sys.stdin.read().split()); {SUM}"),
    Ordinary(
        "stdin_readline", f"import sys\nn = int(sys.stdin.readline()); a = map(int, sys.stdin.readline().split()); {SUM}"
    ),
    Ordinary(
        "stdin_readlines", f"import sys\nl = sys.stdin.readlines(); assert len(l) == 2, l; a = map(int, l[1].split()); {SUM}"
    ),
    Ordinary(
        "input_is_readline",
        f"import sys\ninput = sys.stdin.readline\nn = int(input()); a = list(map(int, input().split())); {SUM}",
    ),
    Ordinary(
        "buffer_readline",
        f"import sys\ninput = sys.stdin.buffer.readline\nn = int(input()); a = list(map(int, input().split())); {SUM}",
    ),
    Ordinary("buffer_read", f"import sys\nd = sys.stdin.buffer.read().split(); a = map(int, d[1:]); {SUM}"),
    Ordinary("buffer_readlines", f"import sys\nl = sys.stdin.buffer.readlines(); a = map(int, l[1].split()); {SUM}"),
    Ordinary("open_0_read", f"a = map(int, open(0).read().split()[1:]); {SUM}"),
    Ordinary("open_0_star", "n, *a = map(int, open(0).read().split()); print(sum(a))"),
    Ordinary("open_0_lines", "l = list(open(0)); print(sum(map(int, l[1].split())))"),
    Ordinary("open_0_binary", "d = open(0, 'rb').read().split(); print(sum(map(int, d[1:])))"),
    Ordinary("open_dev_stdin", "d = open('/dev/stdin').read().split(); print(sum(map(int, d[1:])))", needs_open=True),
    Ordinary("os_read", "import os\nd = os.read(0, 10**6).split(); print(sum(map(int, d[1:])))"),
    Ordinary(
        "os_read_fstat",
        "import os, io\ninput = io.BytesIO(os.read(0, os.fstat(0).st_size)).readline\nn = int(input()); print(sum(map(int, input().split())))",
    ),
    Ordinary("fileinput", "import fileinput\nl = list(fileinput.input()); print(sum(map(int, l[1].split())))"),
    Ordinary(
        "iter_input_sentinel", "import sys\nl = list(iter(sys.stdin.readline, '')); print(sum(map(int, l[1].split())))"
    ),
    Ordinary(
        "input_until_eof",
        "l = []\ntry:\n    while True: l.append(input())\nexcept EOFError: pass\nprint(sum(map(int, l[1].split())))",
    ),
    Ordinary("no_final_newline", "n = int(input()); print(sum(map(int, input().split())))", given="3\n1 2 3"),
    Ordinary(
        "windows_newlines", "import sys\nprint(repr(sys.stdin.read()))", given="1\r\n2\r\n", expected="'1\\r\\n2\\r\\n'\n"
    ),
    Ordinary("empty_input", "import sys\nprint(len(sys.stdin.read()))", given="", expected="0\n"),
    Ordinary("unicode", "s = input(); print(s[::-1], len(s))", given="héllo wörld ✓\n", expected="✓ dlröw olléh 13\n"),
    Ordinary(
        "surrogate_bytes", "import sys\nsys.stdout.write(sys.stdin.read())", given=b"ab\xff\xfe\n", expected=b"ab\xff\xfe\n"
    ),
    Ordinary(
        "fast_io_bytesio",
        """
import os, sys
from io import BytesIO, IOBase
BUFSIZE = 8192
class FastIO(IOBase):
    newlines = 0
    def __init__(self, file):
        self._fd = file.fileno(); self.buffer = BytesIO(); self.writable = "x" in file.mode or "r" not in file.mode
        self.write = self.buffer.write if self.writable else None
    def read(self):
        while True:
            b = os.read(self._fd, max(os.fstat(self._fd).st_size, BUFSIZE))
            if not b: break
            ptr = self.buffer.tell(); self.buffer.seek(0, 2), self.buffer.write(b), self.buffer.seek(ptr)
        self.newlines = 0
        return self.buffer.read()
    def readline(self):
        while self.newlines == 0:
            b = os.read(self._fd, max(os.fstat(self._fd).st_size, BUFSIZE)); self.newlines = b.count(b"\\n") + (not b)
            ptr = self.buffer.tell(); self.buffer.seek(0, 2), self.buffer.write(b), self.buffer.seek(ptr)
        self.newlines -= 1
        return self.buffer.readline()
    def flush(self):
        if self.writable:
            os.write(self._fd, self.buffer.getvalue()); self.buffer.truncate(0), self.buffer.seek(0)
class IOWrapper(IOBase):
    def __init__(self, file):
        self.buffer = FastIO(file); self.flush = self.buffer.flush; self.writable = self.buffer.writable
        self.write = lambda s: self.buffer.write(s.encode("ascii")); self.read = lambda: self.buffer.read().decode("ascii"); self.readline = lambda: self.buffer.readline().decode("ascii")
sys.stdin, sys.stdout = IOWrapper(sys.stdin), IOWrapper(sys.stdout)
input = lambda: sys.stdin.readline().rstrip("\\r\\n")
n = int(input()); print(sum(map(int, input().split())))
""",
    ),
    Ordinary(
        "large_input",
        "import sys\nprint(sum(map(int, sys.stdin.buffer.read().split())))",
        given="1 " * 400_000,
        expected="400000\n",
    ),
    Ordinary("stdout_write", "import sys\ninput(); sys.stdout.write(str(sum(map(int, input().split()))) + '\\n')"),
    Ordinary(
        "stdout_buffer_write", "import sys\ninput(); sys.stdout.buffer.write(b'%d\\n' % sum(map(int, input().split())))"
    ),
    Ordinary("print_is_write", "import sys\nprint = sys.stdout.write\ninput(); print('6'); print('\\n')"),
    Ordinary("no_newline_at_end", "print(6, end='')", expected="6"),
    Ordinary("binary_output", "import sys\nsys.stdout.buffer.write(bytes(range(256)))", expected=bytes(range(256))),
    Ordinary("stringio_at_end", "import io, sys\nout = io.StringIO(); print(6, file=out); sys.stdout.write(out.getvalue())"),
    Ordinary("open_1_write", "f = open(1, 'w'); f.write('6\\n')"),
    Ordinary("open_1_replaces_stdout", "import sys\nsys.stdout = open(1, 'w', buffering=1 << 16)\nprint(6)"),
    Ordinary("os_write", "import os\nos.write(1, b'6\\n')"),
    Ordinary("dev_stdout", "with open('/dev/stdout', 'a') as f: f.write('6\\n')", needs_open=True, needs_writing=True),
    Ordinary(
        "reconfigure",
        "import sys\nsys.stdout.reconfigure(line_buffering=True, encoding='utf-8'); sys.stdin.reconfigure(encoding='utf-8'); print(6)",
    ),
    Ordinary("stderr_debug", "import sys\nprint('debug', file=sys.stderr); print(6)"),
    Ordinary(
        "atexit_output",
        "import atexit, sys\nbuf = []\natexit.register(lambda: sys.stdout.write(''.join(buf)))\nbuf.append('6\\n')",
    ),
    Ordinary("destructor_output", "class A:\n    def __del__(self): print(6)\na = A()"),
    Ordinary("flush_often", "for c in '6\\n': print(c, end='', flush=True)"),
    Ordinary("many_lines", "print('\\n'.join(map(str, range(20000))))", expected="\n".join(map(str, range(20000))) + "\n"),
    Ordinary(
        "redirect_stdout", "import contextlib, io\nb = io.StringIO()\nwith contextlib.redirect_stdout(b): print(5)\nprint(6)"
    ),
    Ordinary("stdin_closed_early", "import sys\nsys.stdin.close(); print(6)"),
    Ordinary("seek_stdin", "import sys\ns = sys.stdin.read(); sys.stdin.seek(0); assert sys.stdin.read() == s; print(6)"),
    Ordinary(
        "mmap_stdin", "import mmap\nm = mmap.mmap(0, 0, access=mmap.ACCESS_READ); print(sum(map(int, m[:].split()[1:])))"
    ),
    Ordinary(
        "mmap_without_a_file",
        """
import mmap
a = mmap.mmap(-1, 4096); a[:3] = b'123'
b = mmap.mmap(-1, length=4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ | mmap.PROT_WRITE)
c = mmap.mmap(-1, 4096, access=mmap.ACCESS_WRITE); c.write(b'1')
d = mmap.mmap(-1, 4096, mmap.MAP_SHARED)
e = mmap.mmap(-1, 4096, access=mmap.ACCESS_COPY)
f = mmap.mmap(-1, 4096, access=mmap.ACCESS_READ)
assert isinstance(a, mmap.mmap) and len(f) == len(e) == 4096 and d[0] == 0
a.resize(8192) if hasattr(a, 'resize') else None
a.close()
with mmap.mmap(-1, 10) as m: m.write(b'6')
print(6)
""",
    ),
    Ordinary(
        "pprint_json",
        "import json, pprint\npprint.pprint({'a': 1}); print(json.dumps({'b': [1, 2]}))",
        expected="{'a': 1}\n{\"b\": [1, 2]}\n",
    ),
]
