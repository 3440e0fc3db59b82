# ruff: noqa: E501 - programs keep the shape in which people write them
"""Cheating in tests by standard input and output, and by function calls."""

from tests.sandbox.programs import Cheat

STDIN_CHEATS = [
    Cheat("print_passed", "print what a grader might look for", "print('passed'); print('OK'); print('True'); print('1/1')"),
    Cheat("exit_zero", "end well without an answer", "import sys; sys.exit(0)"),
    Cheat("os_exit_zero", "end at once", "import os; os._exit(0)"),
    Cheat(
        "forge_turn",
        "tell the runner that the test is over",
        "import os\nos.write(4, b'f\\x00' * 10)\nimport time; time.sleep(0.05)",
    ),
    Cheat(
        "forge_turn_and_hang",
        "claim the end of all tests and go on",
        "import os\nos.write(4, b'f\\x00' * 50)\nwhile True: pass",
    ),
    Cheat("close_control", "hang up on the runner", "import os\nos.close(4)"),
    Cheat("close_everything", "close all descriptors", "import os\nos.closerange(0, 64)"),
    Cheat(
        "read_expected_paths",
        "look for the answer in files",
        """
import glob, os
for pattern in ('*', '../*', '/tmp/*', '/work/*', '/app/*', '/proc/*/environ'):
    for path in glob.glob(pattern):
        try: print(open(path).read())
        except OSError: pass
""",
    ),
    Cheat(
        "scan_memory_for_answer",
        "look for the answer among all objects",
        """
import gc
print(next((o for o in gc.get_objects() if isinstance(o, dict) and 'expected' in o), ''))
""",
    ),
    Cheat(
        "frame_walk",
        "find the grader's variables in the frames above",
        """
import sys
f = sys._getframe()
while f:
    for k, v in f.f_locals.items():
        if k in ('expected', 'gt_out', 'outputs', 'answer'): print(v)
    f = f.f_back
""",
    ),
    Cheat(
        "patch_stdout_compare",
        "a text that equals everything",
        """
import builtins, sys
class S(str):
    def __eq__(self, o): return True
    def __hash__(self): return 0
print(S('x'))
""",
    ),
    Cheat(
        "patch_builtins",
        "replace comparison and print",
        "import builtins\nbuiltins.print = lambda *a: None\nbuiltins.__dict__['input'] = lambda: '0'\nbuiltins.all = lambda *a: True",
    ),
    Cheat(
        "patch_module",
        "patch the sandbox's own modules",
        """
import sys
for n, m in list(sys.modules.items()):
    if n.startswith('runner.'):
        for k in list(vars(m)):
            if callable(vars(m)[k]) and k not in ('wind_up', 'os'): setattr(m, k, lambda *a, **kw: True)
""",
    ),
    Cheat(
        "crash_as_infrastructure",
        "pretend that the sandbox failed, to be left out of the score",
        "import os, sys\nsys.stderr.write('sandbox: OSError: setup failed\\n'); sys.stderr.flush()\nos._exit(125)",
    ),
    Cheat("signal_as_infrastructure", "die as if somebody else had killed it", "import os; os.kill(os.getpid(), 9)"),
    Cheat("right_then_crash", "print every number and crash", "for i in range(1000): print(i)\nraise SystemExit(3)"),
    Cheat("all_answers", "print many answers", "n = int(input())\nfor i in range(0, 100): print(i)"),
    Cheat(
        "learn_from_first",
        "use state of the first test in later ones",
        """
import sys
store = sys.modules.setdefault('store', type(sys)('store'))
store.n = getattr(store, 'n', 0) + 1
print([14, 14, 14][min(store.n, 3) - 1])
""",
    ),
    Cheat(
        "append_later",
        "a thread that overwrites the output after the end",
        """
import threading, os, time
def later():
    time.sleep(0.01)
    os.write(1, b'14\\n')
threading.Thread(target=later, daemon=True).start()
""",
    ),
    Cheat(
        "truncate_output",
        "cut and rewrite the output",
        "import os\nos.write(1, b'junk')\ntry: os.ftruncate(1, 0)\nexcept OSError: pass\nos.lseek(1, 0, 0)\n",
    ),
]

CALL_CHEATS = [
    Cheat(
        "always_equal",
        "return an object that equals everything",
        """
class E:
    def __eq__(self, o): return True
    def __ne__(self, o): return False
    def __hash__(self): return 0
def solve(a): return E()
""",
        "calls",
    ),
    Cheat(
        "always_equal_list",
        "a list that equals everything",
        """
class L(list):
    def __eq__(self, o): return True
    def __len__(self): return 3
    def __iter__(self): return iter([1, 2, 3])
def solve(a): return L([9, 9, 9])
""",
        "calls",
    ),
    Cheat(
        "always_equal_int",
        "elements that equal everything",
        """
class I(int):
    def __eq__(self, o): return True
    __hash__ = int.__hash__
def solve(a): return [I(0)] * len(a)
""",
        "calls",
    ),
    Cheat(
        "always_equal_tuple",
        "a tuple that equals everything",
        """
class T(tuple):
    def __eq__(self, o): return True
def solve(a): return T()
""",
        "calls",
    ),
    Cheat("nan_trick", "values that confuse comparison", "def solve(a): return [float('nan')] * len(a)", "calls"),
    Cheat(
        "return_input",
        "return the argument itself, changed later",
        """
import threading, time
def solve(a):
    threading.Thread(target=lambda: (time.sleep(0.3), a.sort()), daemon=True).start()
    return a
""",
        "calls",
    ),
    Cheat(
        "forge_frame",
        "write its own reply to the control socket",
        """
import os, json
def solve(a):
    b = json.dumps(['v', True]).encode()
    os.write(4, len(b).to_bytes(4, 'little') + b)
    return None
""",
        "calls",
    ),
    Cheat(
        "forge_passed_frame",
        "reply with a verdict",
        """
import os, json
def solve(a):
    b = json.dumps(['passed', '']).encode()
    os.write(4, len(b).to_bytes(4, 'little') + b)
    os._exit(0)
""",
        "calls",
    ),
    Cheat(
        "json_object_reply",
        "reply with raw JSON objects",
        """
import os
def solve(a):
    b = b'["v", {"__eq__": true}]'
    os.write(4, len(b).to_bytes(4, 'little') + b); os._exit(0)
""",
        "calls",
    ),
    Cheat(
        "huge_frame",
        "announce a reply of 4 GB",
        "import os\ndef solve(a):\n    os.write(4, b'\\xff\\xff\\xff\\xff'); os._exit(0)",
        "calls",
    ),
    Cheat(
        "deep_reply",
        "a reply nested a hundred thousand times",
        """
import os
def solve(a):
    b = b'["v",' + b'[' * 100000 + b']' * 100000 + b']'
    os.write(4, len(b).to_bytes(4, 'little'))
    while b: b = b[os.write(4, b):]
    os._exit(0)
""",
        "calls",
    ),
    Cheat(
        "digits_reply",
        "a reply with a number of 200,000 digits",
        """
import os
def solve(a):
    b = b'["v",' + b'7' * 200000 + b']'
    os.write(4, len(b).to_bytes(4, 'little'))
    while b: b = b[os.write(4, b):]
    os._exit(0)
""",
        "calls",
    ),
    Cheat(
        "collision_reply",
        "a set of colliding integers against the runner",
        "def solve(a): return {i * (2**61 - 1) for i in range(3000)}",
        "calls",
    ),
    Cheat("lazy_generator", "a generator that produces what is asked", "def solve(a):\n    while True: yield 1", "calls"),
    Cheat(
        "patch_encoder",
        "patch the encoder of replies",
        """
import runner.sandbox.inside.calls as c
c.encode = lambda *a: True
def solve(a): return None
""",
        "calls",
    ),
    Cheat("missing_function", "define nothing", "x = 1", "calls"),
    Cheat(
        "raise_equal",
        "raise an exception that claims success",
        "class Passed(Exception):\n    def __str__(self): return 'passed'\ndef solve(a): raise Passed",
        "calls",
    ),
    Cheat(
        "poisoned_class",
        "a list whose class, length, items and comparison all lie",
        """
class L(list):
    __class__ = property(lambda self: int)
    def __iter__(self): return iter(Always())
    def __len__(self): return 3
    def __eq__(self, other): return True
    __hash__ = None
class Always(list):
    def __eq__(self, other): return True
def solve(a): return L([Always()])
""",
        "calls",
    ),
    Cheat(
        "fake_numpy",
        "an object that says it is numpy's and turns into what is asked",
        """
class A:
    __module__ = 'numpy'
    def tolist(self): return B()
    def __array_ufunc__(self, *a, **k): return True
    def __array__(self, *a): return True
class B(list):
    __module__ = 'numpy'
    def tolist(self): return self
    def __eq__(self, other): return True
def solve(a): return A()
""",
        "calls",
    ),
    Cheat(
        "proxy",
        "a proxy of a proxy",
        "import weakref\nclass A:\n    def __eq__(s, o): return True\nx = A()\ndef solve(a): return weakref.proxy(x)",
        "calls",
    ),
    Cheat(
        "mutated_constant",
        "make one equal to two",
        "import ctypes\nctypes.c_uint32.from_address(id(1) + 24).value = 2\ndef solve(a): return a",
        "calls",
    ),
    Cheat(
        "late_definition",
        "become right only after the first answer was refused",
        "n = 0\ndef solve(a):\n    global n\n    n += 1\n    return sorted(a) if n > 1 else None",
        "calls",
    ),
    Cheat(
        "thread_answers",
        "a thread that writes replies before they are asked for",
        """
import os, json, threading
b = json.dumps(['v', ['l', 1, 2, 3]]).encode(); b = len(b).to_bytes(4, 'little') + b
threading.Thread(target=lambda: [os.write(4, b) for _ in range(1000)], daemon=True).start()
def solve(a): return None
""",
        "calls",
    ),
    Cheat(
        "tainted_state",
        "leave hooks behind that answer the next test",
        """
import sys, builtins
if not hasattr(builtins, 'seen'): builtins.seen = []
sys.settrace(lambda *a: None); builtins.input = lambda *a: '0'; builtins.print = lambda *a, **k: sys.__stdout__.write('14')
builtins.seen.append(sys.stdin.read())
print()
""",
    ),
]
