# ruff: noqa: E501 - programs keep the shape in which people write them
"""The ways in which programs compute: recursion, threads, libraries, exits."""

from tests.sandbox.programs import Ordinary

IDIOMS = [
    Ordinary("exit_in_the_middle", "print(6)\nexit()\nprint(7)"),
    Ordinary("sys_exit", "import sys\nprint(6); sys.exit()"),
    Ordinary("sys_exit_zero_in_function", "import sys\ndef main():\n    print(6); sys.exit(0)\nmain()"),
    Ordinary("quit", "print(6); quit()"),
    Ordinary("raise_system_exit", "print(6)\nraise SystemExit"),
    Ordinary("os_exit_after_flush", "import os, sys\nprint(6); sys.stdout.flush(); os._exit(0)"),
    Ordinary("main_guard", "def main(): print(6)\nif __name__ == '__main__': main()"),
    Ordinary("main_guard_double_quotes", 'def main(): print(6)\nif __name__ == "__main__":\n    main()'),
    Ordinary("global_variable", "n = 5\ndef f():\n    global n\n    n += 1\nf(); print(n)"),
    Ordinary(
        "setrecursionlimit",
        "import sys\nsys.setrecursionlimit(10**7)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(50000))",
        expected="50000\n",
    ),
    Ordinary(
        "recursion_200000",
        "import sys\nsys.setrecursionlimit(10**6)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(200000))",
        expected="200000\n",
    ),
    Ordinary(
        "recursion_in_thread",
        "import sys, threading\nsys.setrecursionlimit(10**6); threading.stack_size(256 << 20)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\ndef main(): print(f(200000))\nt = threading.Thread(target=main); t.start(); t.join()",
        expected="200000\n",
    ),
    Ordinary(
        "thread_stack_512",
        "import threading\nthreading.stack_size(512 * 1024 * 1024 - 4096)\nt = threading.Thread(target=lambda: print(6)); t.start(); t.join()",
    ),
    Ordinary("thread_not_joined", "import threading\nthreading.Thread(target=lambda: print(6)).start()"),
    Ordinary(
        "thread_pool",
        "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as p: print(sum(p.map(int, '123')))",
    ),
    Ordinary(
        "lru_cache_deep",
        "import sys\nfrom functools import lru_cache\nsys.setrecursionlimit(10**6)\n@lru_cache(None)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(2500))",
        expected="2500\n",
    ),
    Ordinary(
        "generator_bootstrap",
        "from types import GeneratorType\ndef boot(f, stack=[]):\n    def w(*a):\n        if stack: return f(*a)\n        to = f(*a)\n        while True:\n            if type(to) is GeneratorType: stack.append(to); to = next(to)\n            else:\n                stack.pop()\n                if not stack: break\n                to = stack[-1].send(to)\n        return to\n    return w\n@boot\ndef f(n):\n    if n == 0: yield 0\n    else:\n        r = yield f(n - 1)\n        yield r + 1\nprint(f(20000))",
        expected="20000\n",
    ),
    Ordinary(
        "collections",
        "from collections import *\nd = defaultdict(list); d[1].append(2); c = Counter('aab'); q = deque([1, 2]); q.rotate(1)\nprint(d[1], c['a'], list(q))",
        expected="[2] 2 [2, 1]\n",
    ),
    Ordinary(
        "heapq_bisect",
        "import heapq, bisect\nh = [3, 1, 2]; heapq.heapify(h); print(heapq.heappop(h), bisect.bisect([1, 2, 3], 2))",
        expected="1 2\n",
    ),
    Ordinary(
        "itertools_math",
        "from itertools import *\nfrom math import *\nprint(len(list(permutations(range(4)))), gcd(12, 18), comb(5, 2), isqrt(17))",
        expected="24 6 10 4\n",
    ),
    Ordinary(
        "decimal_fractions",
        "from decimal import *\nfrom fractions import Fraction\ngetcontext().prec = 30\nprint(Decimal(1) / 3, Fraction(1, 3) + Fraction(1, 6))",
        expected="0.333333333333333333333333333333 1/2\n",
    ),
    Ordinary("big_integers", "import sys\nsys.set_int_max_str_digits(0)\nprint(len(str(3 ** 20000)))", expected="9543\n"),
    Ordinary(
        "dataclass_enum_typing",
        "from dataclasses import dataclass\nfrom enum import Enum\nfrom typing import *\n@dataclass\nclass P:\n    x: int\nclass C(Enum):\n    A = 1\nprint(P(1), C.A)",
        expected="P(x=1) C.A\n",
    ),
    Ordinary(
        "random_seeded",
        "import random\nrandom.seed(1); a = random.random(); random.seed(1); print(a == random.random())",
        expected="True\n",
    ),
    Ordinary(
        "time_and_perf",
        "import time\nt = time.time(); time.sleep(0.01); print(time.time() > t, time.perf_counter() > 0)",
        expected="True True\n",
    ),
    Ordinary("asyncio", "import asyncio\nasync def main():\n    await asyncio.sleep(0.001); print(6)\nasyncio.run(main())"),
    Ordinary(
        "asyncio_gather",
        "import asyncio\nasync def w(i):\n    await asyncio.sleep(0); return i\nasync def main(): print(sum(await asyncio.gather(*map(w, range(4)))))\nasyncio.run(main())",
    ),
    Ordinary("numpy_sum", "import numpy as np\nprint(int(np.array([1, 2, 3]).sum()))", numpy=True),
    Ordinary(
        "numpy_fromstring",
        "import sys, numpy as np\nd = np.array(sys.stdin.read().split(), dtype=np.int64); print(d[1:].sum())",
        numpy=True,
    ),
    Ordinary(
        "numpy_linalg",
        "import numpy as np\na = np.eye(50) * 2\nprint(int(round(np.linalg.det(a) ** (1 / 50))), (a @ a)[0, 0], np.fft.fft(np.ones(4))[0].real)",
        expected="2 4.0 4.0\n",
        numpy=True,
    ),
    Ordinary(
        "late_import",
        "import colorsys, graphlib, csv, difflib, uuid\nprint(list(graphlib.TopologicalSorter({1: [2]}).static_order()))",
        expected="[2, 1]\n",
        needs_open=True,
    ),
    Ordinary(
        "zoneinfo_datetime",
        "from datetime import datetime, timedelta\nprint(datetime(2024, 2, 28) + timedelta(days=2))",
        expected="2024-03-01 00:00:00\n",
    ),
    Ordinary("exec_eval", "ns = {}\nexec('def f(x): return x + 1', ns); print(eval('f(5)', ns))"),
    Ordinary(
        "pickle_copy",
        "import pickle, copy\na = [1, [2]]; print(pickle.loads(pickle.dumps(a)) == copy.deepcopy(a))",
        expected="True\n",
    ),
    Ordinary(
        "pickle_own_class",
        "import pickle\nclass P:\n    def __init__(self, x): self.x = x\nprint(pickle.loads(pickle.dumps(P(6))).x)",
    ),
    Ordinary(
        "main_module_lookup", "import __main__, sys\nx = 6\nprint(__main__.x if sys.modules['__main__'] is __main__ else 0)"
    ),
    Ordinary(
        "match_walrus_fstring",
        "x = 6\nmatch x:\n    case 6: r = 'six'\nif (n := len(r)) == 3: print(f'{x=} {n}')",
        expected="x=6 3\n",
    ),
    Ordinary("annotations_future", "from __future__ import annotations\ndef f(a: Foo) -> Bar: return 6\nprint(f(1))"),
    Ordinary(
        "signal_alarm",
        "import signal\ndef h(*a): print(6); raise SystemExit\nsignal.signal(signal.SIGALRM, h); signal.setitimer(signal.ITIMER_REAL, 0.01)\nwhile True: pass",
    ),
    Ordinary(
        "subinterpreter_free_gc",
        "import gc\ngc.disable(); a = [[] for _ in range(100000)]; gc.collect(); gc.freeze(); print(6)",
    ),
    Ordinary("memory_60_mb", "a = bytearray(60 << 20)\nfor i in range(0, len(a), 4096): a[i] = 1\nprint(6)"),
    Ordinary("cpu_half_second", "s = 0\nfor i in range(5_000_000): s += i\nprint(6)"),
    Ordinary(
        "sort_key_cmp",
        "from functools import cmp_to_key\nprint(*sorted('312', key=cmp_to_key(lambda a, b: int(a) - int(b))))",
        expected="1 2 3\n",
    ),
    Ordinary(
        "try_except_import",
        "try:\n    import no_such_module\nexcept ImportError: pass\ntry:\n    import resource; resource.setrlimit(resource.RLIMIT_STACK, (-1, -1))\nexcept Exception: pass\nprint(6)",
    ),
    Ordinary(
        "dunder_file_argv", "import sys, os\nprint(len(sys.argv), os.path.basename(__file__))", expected="1 solution.py\n"
    ),
    Ordinary("hash_of_strings", "print(len({'a', 'b', 'a'}), sorted({'x': 1, 'y': 2}))", expected="2 ['x', 'y']\n"),
    Ordinary(
        "environment",
        "import os\nos.environ['X'] = '1'; print(os.environ.get('LOCAL', 'no'), os.getenv('X'))",
        expected="no 1\n",
    ),
    Ordinary(
        "locale_format", "import locale\nprint(f'{1234567:,}', '%.3f' % 3.14159, round(2.5))", expected="1,234,567 3.142 2\n"
    ),
    Ordinary(
        "ctypes_array",
        "import ctypes, array\na = (ctypes.c_int * 3)(1, 2, 3); print(sum(a), sum(array.array('i', [1, 2])))",
        expected="6 3\n",
    ),
    Ordinary(
        "uncaught_in_thread", "import threading\nt = threading.Thread(target=lambda: 1 / 0); t.start(); t.join(); print(6)"
    ),
    Ordinary(
        "pathlib_cwd",
        "import os, pathlib\nprint(list(pathlib.Path('.').iterdir()), os.path.exists('input.txt'))",
        expected="[] False\n",
        needs_open=True,
    ),
    Ordinary(
        "fallback_file_input",
        "import sys, os\nif os.path.exists('input.txt'): sys.stdin = open('input.txt')\ninput(); print(sum(map(int, input().split())))",
    ),
    Ordinary("byte_order_mark", "\ufeffprint(6)"),
    Ordinary("windows_source", "def f():\r\n    return 6\r\nprint(f())\r\n"),
    Ordinary(
        "raise_stack_limit",
        "import resource, sys\nresource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\nsys.setrecursionlimit(10**6)\nprint(6)",
    ),
    Ordinary(
        "stdout_without_closed",
        "import sys\nclass Out:\n    def __init__(self): self.parts = []\n    def write(self, s): self.parts.append(s)\n    def flush(self): sys.__stdout__.write(''.join(self.parts)); self.parts = []\nsys.stdout = Out()\nprint(6)",
    ),
]
