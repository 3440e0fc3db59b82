"""The two processes beside the runner: one starts the harness and waits for it, the other reads what the harness writes.

Both are forked before anything else runs and stay root in a container, so that they can work as the harness's user. The
harness has a network of its own with nothing but a loopback interface, on which the runner listens: the listening socket is
made there and passed to the runner. Each takes one line as an order and answers with lines of JSON; both end when the
runner closes the connection.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runner.commands.counters import Counters
from runner.commands.isolation import CommandFilter, keep_only_needed_capabilities, leave_network, leave_network_as_user
from runner.commands.repeat import NOT_STARTED, Measured, Program, Stopped, measure
from runner.commands.user_image import Guest, find_guest, own_guest, put_files, working_directory
from runner.contract.harness import HarnessTask
from runner.contract.run_spec import ModelSpec, RunSpec
from runner.harness.model_endpoint import harness_key, variables
from runner.harness.results_files import send_file
from runner.harness.results_scan import Scan, limit_resources, line, run_scan
from runner.sandbox.kernel import process_tree, syscalls

GO = b"go\n"
FOREVER_S = 10 * 365 * 86400.0
"""The run's deadline limits a harness."""
NO_FILES = "its files could not be written; /tmp may be too small: choose a larger instance type"


@dataclass(frozen=True)
class HarnessProcesses:
    starter: socket.socket
    reading: socket.socket
    listener: socket.socket
    facts: dict[str, Any]
    remove: str | None = None
    """A folder that the runner removes at the end; None in a container, which goes as a whole."""


def open_harness(spec: RunSpec, engine: str) -> HarnessProcesses | None:
    """Returns None if the run has no harness, or if this is not the harness's image. No other thread may run."""
    task, guest = spec.harness, find_guest()
    if task is None:
        return None
    alone = guest is None and engine == "process"
    if alone:
        guest = own_guest(task.image)
    if guest is None or guest.image != task.image:
        return None
    return start(task, guest, engine, spec.sandbox_uid_base, spec.model, harness_key(spec.run_token), remove=alone)


def start(
    task: HarnessTask, guest: Guest, engine: str, uid: int, model: ModelSpec, key: str, *, remove: bool = False
) -> HarnessProcesses:
    uid = uid if engine != "process" and os.geteuid() == 0 else -1
    folder = working_directory(guest.scratch[0])
    reading = _forked(lambda link: _serve_readings(link, task, folder, uid))
    starter = _forked(lambda link: _serve_harness(link, _Place(task, guest, engine, uid, folder), model, key))
    hello, fds, _, _ = socket.recv_fds(starter, 4096, 1)
    if not fds:
        raise OSError("the harness's process did not start")
    facts = {"image": guest.image, "image_id": guest.image_id, **json.loads(hello)}
    listener = socket.socket(fileno=fds[0])
    return HarnessProcesses(starter, reading, listener, facts, guest.scratch[0] if remove else None)


def _forked(serve: Callable[[socket.socket], None]) -> socket.socket:
    ours, its = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        code = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends together with the runner
            syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL.value)
            serve(its)
            code = 0
        except BaseException as error:
            sys.stderr.write(f"harness process: {type(error).__name__}: {error}\n")
        finally:
            sys.stderr.flush()
            os._exit(code)
    its.close()
    return ours


@dataclass(frozen=True)
class _Place:
    task: HarnessTask
    guest: Guest
    engine: str
    uid: int
    folder: str


def _serve_harness(link: socket.socket, place: _Place, model: ModelSpec, key: str) -> None:
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    task, guest = place.task, place.guest
    contained = place.engine != "process"
    apart = not guest.network and (leave_network() or (not contained and leave_network_as_user()))
    if contained:
        keep_only_needed_capabilities()
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    port = int(listener.getsockname()[1])
    network = (
        "allowed" if guest.network else "loopback only" if apart else "the container's" if contained else "not restricted"
    )
    socket.send_fds(link, [line({"network": network})], [listener.fileno()])
    listener.close()
    program = Program(
        argv=task.argv,
        env={**guest.env, **task.env, **variables(port, key, model)},
        workdir=place.folder,
        timeout_s=FOREVER_S,
        uid=place.uid,
        walls=CommandFilter(sockets=True) if syscalls.supported() else None,
    )
    with link.makefile("rb") as orders:
        if orders.readline() != GO:
            return
        if process_tree.as_user(place.uid, lambda: put_files(place.folder, task.files)):
            measured, stopped = Measured(exit_code=NOT_STARTED, trouble=NO_FILES), False
        else:
            measured, stopped = _measured(program, Counters(place.engine), link)
        result = {name: value for name, value in vars(measured).items() if name != "output"}
        text = measured.output.text()
        link.sendall(line({**result, "stopped": stopped, "output": text, "output_bytes": measured.output.total}))
        orders.readline()  # until the runner has read the results


def _measured(program: Program, counters: Counters, link: socket.socket) -> tuple[Measured, bool]:
    try:
        return measure(program, counters, link.fileno()), False
    except Stopped:
        return Measured(), True


def _serve_readings(link: socket.socket, task: HarnessTask, folder: str, uid: int) -> None:
    """Orders are `{"marks": ..., "final": ...}`, or `{"send": path}` for the content of a file."""
    with link.makefile("rb") as orders:
        while order := orders.readline():
            wanted = json.loads(order)

            def work(wanted: dict[str, Any] = wanted) -> int:
                limit_resources()
                if "send" in wanted:
                    send_file(folder, wanted["send"], wanted["most"], link)
                else:
                    scan = Scan(task.results, folder, wanted["marks"], wanted["final"])
                    run_scan(scan, lambda message: link.sendall(line(message)))
                return 0

            code = process_tree.as_user(uid, work)
            link.sendall(b"\n" + line({"end": code}))
