"""One service for most faults: its instance types say which program the runner is (all of them on the real image)."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import replace

from tests.bench.faults.scene import Opening, Scene, open_scene
from tests.faults import faulty_line, images

STANDARD = {"vcpu": 0.5, "memory_mib": 4096, "disk_gb": 8}
REAL = """
import os, sys

line = sys.stdin.readline()
read, write = os.pipe()
os.write(write, line.encode())
os.close(write)
os.dup2(read, 0)
os.chdir("/app")
os.execv("/opt/venv/bin/python", ["/opt/venv/bin/python", "-m", "runner"])
"""
TINY_MIB = 64


def _programs() -> dict[str, str]:
    with open(faulty_line.__file__) as file:
        line = file.read()
    return {
        "standard-1": REAL,
        "tiny": REAL,
        "faulty-line": line,
        "never-claims": images.NEVER_CLAIMS,
        "exits-quietly": images.EXITS_QUIETLY,
        "hangs": images.HANGS_WITH_HEARTBEATS,
    }


def open_kinds(opening: Opening) -> AbstractContextManager[Scene]:
    programs = _programs()
    types = {kind: STANDARD | ({"memory_mib": TINY_MIB} if kind == "tiny" else {}) for kind in programs}
    settings = {
        **opening.settings,
        "runner_image": images.build("kinds", images.by_instance_type(programs)),
        "instance_types": json.dumps(types),
        "memory_capacity_mib": 1 << 20,
        "vcpu_capacity": 64,
    }
    return open_scene(replace(opening, settings=settings))
