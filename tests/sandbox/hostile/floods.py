# ruff: noqa: E501 - programs keep the shape in which people write them
"""Using up output and time."""

from tests.sandbox.programs import Hostile

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
