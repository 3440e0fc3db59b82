# ruff: noqa: E501 - programs keep the shape in which people write them
"""Cheating where test code with assertions decides."""

from tests.sandbox.programs import Cheat

CHECK_CHEATS = [
    Cheat(
        "check_always_equal",
        "an object that equals everything",
        """
class E:
    def __eq__(self, o): return True
    def __ne__(self, o): return False
    def __lt__(self, o): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __bool__(self): return True
    def __sub__(self, o): return 0
    def __rsub__(self, o): return 0
    def __abs__(self): return 0
def add(a, b): return E()
""",
        "check",
    ),
    Cheat(
        "check_int_subclass",
        "a number that equals everything",
        "class I(int):\n    def __eq__(self, o): return True\n    def __hash__(self): return 0\ndef add(a, b): return I(0)",
        "check",
    ),
    Cheat(
        "check_patch_check",
        "replace check and AssertionError",
        """
import builtins, sys
builtins.AssertionError = ZeroDivisionError
def add(a, b):
    f = sys._getframe()
    while f:
        f.f_globals['check'] = lambda c: None
        f = f.f_back
    return 0
""",
        "check",
    ),
    Cheat("check_os_exit", "end the process while being tested", "import os\ndef add(a, b): os._exit(0)", "check"),
    Cheat("check_sys_exit", "exit with 0 while being tested", "import sys\ndef add(a, b): sys.exit(0)", "check"),
    Cheat("check_exit_at_load", "exit with 0 when loaded", "raise SystemExit(0)", "check"),
    Cheat(
        "check_forge_reply",
        "answer more than it was asked",
        """
import os, json
b = json.dumps(['passed', '']).encode()
os.write(4, (len(b).to_bytes(4, 'little') + b) * 5)
def add(a, b): return 0
""",
        "check",
    ),
    Cheat(
        "check_forge_verdict",
        "write a verdict to every descriptor",
        """
import os, json
b = json.dumps(['passed', '']).encode(); b = len(b).to_bytes(4, 'little') + b
def add(x, y):
    for fd in range(1, 64):
        try: os.write(fd, b)
        except OSError: pass
    os._exit(0)
""",
        "check",
    ),
    Cheat(
        "check_raise_assertion_free",
        "raise something that the test might swallow",
        "def add(a, b): raise StopIteration",
        "check",
    ),
    Cheat("check_generator_exit", "raise what is no Exception", "def add(a, b): raise GeneratorExit", "check"),
    Cheat(
        "check_opaque_compare",
        "an object whose parts answer as wished",
        """
class A:
    def __getattr__(self, n): return lambda *a, **k: True
def add(a, b): return A()
""",
        "check",
    ),
    Cheat(
        "check_shadow_names",
        "define names that the test uses",
        "def check(c): pass\ndef isinstance(a, b): return True\ndef abs(x): return 0\ndef add(a, b): return None\nassertEqual = lambda *a: True",
        "check",
    ),
    Cheat(
        "check_mutate_arguments",
        "change the test's own lists in place",
        "def add(a, b):\n    return NotImplemented",
        "check",
    ),
    Cheat("check_hang", "never answer", "def add(a, b):\n    while True: pass", "check"),
    Cheat("check_close", "hang up and live on", "import os, time\nos.close(4)\ntime.sleep(100)", "check"),
]
