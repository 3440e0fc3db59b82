"""The process that runs and measures a command's repeats. It is separate from the reporting process, so that nothing
disturbs its measurements and heartbeats continue whatever a command or pattern does.

It is forked before anything else runs, and stays root in a container, so that it can run commands as another user. One line
requests a repeat, one line answers. When the other side closes the connection, it ends everything.
"""

import contextlib
import json
import os
import signal
import socket
import sys
from dataclasses import dataclass
from typing import Any, NoReturn

from runner.commands.counters import Counters
from runner.commands.figures import figures_in
from runner.commands.isolation import CommandFilter, keep_only_needed_capabilities, leave_network
from runner.commands.repeat import NOT_STARTED, Measured, Program, Stopped, measure
from runner.commands.user_image import Guest, find_guest, own_guest, put_files, working_directory
from runner.contract.commands import CommandTask, Figure
from runner.contract.run_spec import RunSpec
from runner.sandbox.kernel import process_tree, syscalls

FIGURES_S = 10
NO_FILES = "its files could not be written; /tmp may be too small: choose a larger instance type"
GO = b"repeat\n"


class _TookTooLong(Exception):
    """Matching the patterns took too long."""


@dataclass(frozen=True)
class MeasuringProcess:
    link: socket.socket
    facts: dict[str, Any]


def open_measuring_process(spec: RunSpec, engine: str) -> MeasuringProcess | None:
    """Returns the measuring process of a command run; None if there is no command, or if this is not the command's image."""
    task, guest = spec.command, find_guest()
    if task is None:
        return None
    if guest is None and engine == "process":
        guest = own_guest(task.image)
    if guest is None or guest.image != task.image:
        return None
    link = start(task, guest, engine, spec.sandbox_uid_base)
    return MeasuringProcess(link, {"image": guest.image, "image_id": guest.image_id})


def start(task: CommandTask, guest: Guest, engine: str, uid: int) -> socket.socket:
    """Forks the measuring process and returns the connection to it. No other thread may run."""
    ours, its = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        code = 1
        try:
            _serve(its, task, guest, engine, uid)
            code = 0
        except BaseException as error:
            sys.stderr.write(f"measuring process: {type(error).__name__}: {error}\n")
        finally:
            _leave(code)
    its.close()
    return ours


def _leave(code: int) -> NoReturn:
    sys.stderr.flush()
    os._exit(code)


def _serve(link: socket.socket, task: CommandTask, guest: Guest, engine: str, uid: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends together with the runner
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL.value)
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    contained = engine != "process"
    apart = not guest.network and contained and leave_network()
    if contained:
        keep_only_needed_capabilities()
    walls = CommandFilter(sockets=guest.network or apart) if syscalls.supported() else None
    uid = uid if contained and os.geteuid() == 0 else -1
    program = Program(
        argv=task.argv,
        env={**guest.env, **task.env},
        workdir=working_directory(guest.scratch[0]) if task.files else task.workdir or guest.workdir,
        timeout_s=task.timeout_s,
        uid=uid,
        walls=walls,
    )
    counters = Counters(engine)
    network = "allowed" if guest.network else "loopback only" if apart else "none" if walls else "not restricted"
    _send(link, {"ready": True, "network": network})
    with link.makefile("rb") as orders:
        while orders.readline() == GO:
            with contextlib.suppress(Stopped):
                if task.files and process_tree.as_user(uid, lambda: put_files(program.workdir, task.files)):
                    measured = Measured(exit_code=NOT_STARTED, trouble=NO_FILES)
                else:
                    measured = measure(program, counters, link.fileno())
                _send(link, _result(measured, task))
            for folder in guest.scratch:
                process_tree.as_user(uid, lambda folder=folder: process_tree.empty(folder))  # type: ignore[misc]


def _result(measured: Measured, task: CommandTask) -> dict[str, Any]:
    text = measured.output.text()
    figures: list[Figure] = []
    missing: list[str] = []
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(FIGURES_S)
    try:
        figures, missing = figures_in(text, task.figures)
    except _TookTooLong:
        missing = [f"any: the patterns took longer than {FIGURES_S} s"]
    finally:
        signal.alarm(0)
    return {
        **{name: value for name, value in vars(measured).items() if name != "output"},
        "figures": [figure.model_dump(mode="json") for figure in figures],
        "missing": missing,
        "output": text,
        "output_bytes": measured.output.total,
    }


def _too_long(*_: object) -> None:
    raise _TookTooLong


def _send(link: socket.socket, message: dict[str, Any]) -> None:
    link.sendall(json.dumps(message).encode() + b"\n")
