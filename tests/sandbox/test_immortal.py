"""What a zygote has is made immortal where the interpreter knows such objects; what comes later is not."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.sandbox.conftest import HARDENED

ROOT = Path(__file__).parents[2]
LOOK = """
import gc, json, sys, weakref
from runner.sandbox.inside.immortal import make_immortal
class Own: pass
many = make_immortal()
fixed = sys.getrefcount(None)
later, own = [], Own()
gone = weakref.ref(own)
del own
print(many > 10_000, sys.getrefcount(json.dumps) == fixed, sys.getrefcount(json.dumps.__code__.co_consts) == fixed)
print(sys.getrefcount(later) < 10, gone() is None, json.loads(json.dumps([1, {"a": 2}])))
"""


def look(*command: str) -> list[str]:
    return subprocess.run([*command, "-c", LOOK], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def test_an_interpreter_without_immortal_objects_is_left_alone() -> None:
    lasts = str(sys.version_info >= (3, 12))
    assert look(sys.executable) == [f"{lasts} {lasts} {lasts}", "True True [1, {'a': 2}]"]


@pytest.mark.engine
def test_in_the_container_all_that_is_there_lasts() -> None:
    mounted = ["-v", f"{ROOT}:/source:ro", "-w", "/source", "--entrypoint", "python"]
    command = ["docker", "run", "--rm", *HARDENED, *mounted, "benchyard-runner"]
    assert look(*command) == ["True True True", "True True [1, {'a': 2}]"]
