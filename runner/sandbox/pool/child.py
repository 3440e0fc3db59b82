"""One child from the runner's side: started on a worker, given tests one by one, ended, its results read."""

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Self

from runner.sandbox.inside.stdin_tests import THE_INPUT
from runner.sandbox.kernel.process_tree import peak_bytes
from runner.sandbox.limits import Limits
from runner.sandbox.outcome import Ending, Execution, Usage
from runner.sandbox.pool.channel import LARGE, Channel
from runner.sandbox.pool.diagnosis import (
    CAME_TO_ITS_END,
    Diagnosis,
    Evidence,
    diagnose,
    diagnose_report,
    killed_from_outside,
)
from runner.sandbox.pool.memory_files import sealed
from runner.sandbox.pool.replies import Reply, frame, reply_of, with_value
from runner.sandbox.pool.watchdog import LONGEST_STRETCH, Watchdog
from runner.sandbox.pool.worker import GoneError, Worker
from runner.sandbox.protocol.messages import ENDED_BYTES, INLINE_BYTES, Ended, Job, Mode, Report
from runner.sandbox.protocol.values import BadValueError, Tree, parse

TAIL_BYTES = 4096
FRAME_SLACK = 64 * 1024
QUICK_S = 0.002
"""A faster test cannot have touched much new memory."""
HASTY_S = 0.1, 1.0
"""CPU and wall seconds for all tests of one turn: quick ones need less, others are better run one by one."""


class Child:
    """One program in one process; several tests of that program may follow each other."""

    def __init__(self, worker: Worker, pid: int, limits: Limits, control: socket.socket | None, new_files: bool) -> None:
        self._worker, self._pid, self._streams = worker, pid, worker.stream_pool.take(new=new_files)
        self._channel = None if control is None else Channel(control)
        self.limits = limits
        self._report: Report | None = None
        self._peak = 0
        self._watchdog: Watchdog | None = None
        self.tests = 0
        self.room = 0
        """How many inputs it can be given for one turn."""
        self.last_out_bytes = 0
        """Size of the last test's output."""
        self.disturbed = False
        """Another process killed it, so the execution gets a second try."""

    @classmethod
    async def start(
        cls,
        worker: Worker,
        mode: Mode,
        payload: bytes,
        limits: Limits,
        *,
        tests: int = 1,
        control: socket.socket | None = None,
        new_files: bool = False,
        inputs: Sequence[bytes] = (),
    ) -> Self:
        """Starts a child that will serve `tests` tests. `inputs` are those that may be run in one turn after its first test.

        `control` is the child's end of the connection if another process than the runner talks to it; it is closed here.
        With `new_files` its streams are unused, so that their times and numbers reveal nothing about the previous process.
        """
        try:
            pid = await worker.ready()
        except BaseException:
            if control is not None:
                control.close()
            worker.close()  # an answer may still be pending there
            raise
        ours: socket.socket | None = None
        if control is None:
            ours, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        child = cls(worker, pid, limits, ours, new_files)
        lent: list[int] = []
        try:
            lent = child._streams.for_child()
            inline = len(payload) <= INLINE_BYTES
            if not inline:
                lent.append(sealed(payload))
            if inputs:
                lent += child._streams.more_for_child(inputs)
                child.room = len(inputs)
            job = Job(
                pid=pid,
                mode=mode,
                wall_s=limits.wall_s * LONGEST_STRETCH * tests + 5,
                cpu_s=limits.cpu_s * tests,
                memory_bytes=limits.memory_bytes,
                file_bytes=max(limits.output_bytes, limits.file_bytes) + 1,
                processes=limits.processes,
                open_files=limits.open_files,
                disk_bytes=limits.disk_bytes,
                code_bytes=0 if inline else len(payload),
                tests=tests,
            )
            worker.start(job, payload if inline else b"", [*lent[:3], control.fileno(), *lent[3:]])
        except BaseException:
            child.abandon()
            raise
        finally:
            control.close()
            for fd in lent:
                os.close(fd)
        return child

    async def stdin_test(self, stdin: bytes) -> Execution:
        """Runs the program on one input."""
        if len(stdin) > LARGE:
            await asyncio.to_thread(self._streams.prepare, stdin)
        else:
            self._streams.prepare(stdin)
        return await self._test(self._stdin_turn)

    async def stdin_tests(self, inputs: Sequence[bytes]) -> list[Execution]:
        """Runs the program on several inputs, at most `room`, in one turn.

        The results count only if all of them together kept every limit of one test; otherwise none is returned.
        """
        started, many = self.tests, len(inputs)
        self._streams.prepare(b"")
        self._streams.fill(inputs)
        ended: list[Ended] = []
        whole = await self._test(lambda: self._stdin_turns(many, ended), HASTY_S)
        self.tests = started + many
        if whole.ending is not Ending.finished or not self.alive:
            return []
        usage = Usage(whole.usage.cpu_s / many, whole.usage.wall_s / many, whole.usage.peak_bytes)
        out_bytes, err_bytes = self._streams.sizes()
        done: list[Execution] = []
        out = err = 0
        for one in ended:
            if not (out <= one.out_bytes <= out_bytes and err <= one.err_bytes <= err_bytes):
                return []
            done.append(self._one_of(one, whole.stdout[out : one.out_bytes], err, usage))
            out, err = one.out_bytes, one.err_bytes
        return done if (out, err) == (out_bytes, err_bytes) else []

    def _one_of(self, one: Ended, output: bytes, err: int, usage: Usage) -> Execution:
        self.last_out_bytes = len(output)
        diagnosis = CAME_TO_ITS_END
        if one.ending != b"f" or one.status:
            diagnosis = diagnose_report(one.ending, one.status)
        return Execution(
            ending=diagnosis.ending,
            stdout=output,
            stderr_tail=self._streams.errors(max(err, one.err_bytes - TAIL_BYTES), one.err_bytes)
            if one.err_bytes > err
            else "",
            exit_code=diagnosis.exit_code,
            usage=usage,
            detail=diagnosis.detail,
        )

    async def call(self, request: bytes) -> Execution:
        """Calls a function of the program; the value is in the execution."""
        self._streams.prepare(b"")
        return await self._test(lambda: self._call_turn(request))

    async def calls(self, request: bytes, many: int) -> list[Execution]:
        """Several calls in one turn; their results count only if all of them together kept every limit of one."""
        started = self.tests
        self._streams.prepare(b"")
        replies: list[Reply] = []
        whole = await self._test(lambda: self._calls_turn(request, replies), HASTY_S)
        self.tests = started + many
        if len(replies) != many or whole.ending is not Ending.finished:
            return []
        usage = Usage(whole.usage.cpu_s / many, whole.usage.wall_s / many, whole.usage.peak_bytes)
        returned = replace(whole, usage=usage)
        raised = replace(returned, ending=Ending.crashed, exit_code=1, detail="It ended with an uncaught exception.")
        return [with_value(returned, one.value) if one.reported == b"f" else raised for one in replies]

    @property
    def _control(self) -> Channel:
        assert self._channel is not None, "somebody else talks to this child"
        return self._channel

    async def _stdin_turn(self) -> Reply:
        await self._control.send(THE_INPUT)
        report = await self._control.receive(2)
        return Reply(report[:1].lower(), report[1], last=report[:1].isupper())

    async def _stdin_turns(self, many: int, ended: list[Ended]) -> Reply:
        await self._control.send(bytes([many]))
        ended += Ended.unpack_all(await self._control.receive(many * ENDED_BYTES))
        return Reply(b"f")

    async def _call_turn(self, request: bytes) -> Reply:
        await self._control.send(frame(request))
        return await self._call_reply()

    async def _calls_turn(self, request: bytes, replies: list[Reply]) -> Reply:
        await self._control.send(frame(request))
        answers = await self._answer()
        if answers is None:
            return Reply(too_large=True)
        if not isinstance(answers, list):
            raise BadValueError("no answers")
        replies += map(reply_of, answers)
        return Reply(b"f")

    async def _call_reply(self) -> Reply:
        answer = await self._answer()
        return Reply(too_large=True) if answer is None else reply_of(answer)

    async def _answer(self) -> Tree:
        """Returns what it sent back, None if that is too much."""
        size = int.from_bytes(await self._control.receive(4), "little")
        if size > self.limits.output_bytes + FRAME_SLACK:
            return None
        answer = parse(await self._control.receive(size))
        if answer is None:
            raise BadValueError("no answer")
        return answer

    async def judgement(self, task: bytes, peer: socket.socket) -> Execution:
        """Runs test code against the program behind `peer`; the execution's value is the verdict."""
        self._streams.prepare(b"")
        # It mostly waits for the program, whose own watchdog checks wall time.
        if self._watchdog is None:
            self._watchdog = Watchdog(self._pid, self.limits.cpu_s, self.limits.wall_s * LONGEST_STRETCH, self._worker.kill)
        return await self._test(lambda: self._judgement_turn(task, peer))

    async def _judgement_turn(self, task: bytes, peer: socket.socket) -> Reply:
        with peer:
            self._control.send_descriptor(len(task).to_bytes(4, "little"), peer.fileno())
        await self._control.send(task)
        answer = json.loads(await self._control.receive(int.from_bytes(await self._control.receive(4), "little")))
        return Reply(b"f", 0, answer)

    def start_watchdog(self, partner: "Child") -> Watchdog:
        """Starts the watchdog of a child that another one talks to; pass it to `conclude`."""
        self._watchdog = Watchdog(self._pid, self.limits.cpu_s, self.limits.wall_s, self._worker.kill, partner=partner._pid)
        self._watchdog.start()
        return self._watchdog

    async def conclude(self, watchdog: Watchdog, patience_s: float) -> Execution:
        """Returns how a child ended that another process talked to.

        With `patience_s` it is said to be gone: if it is not after that time, it is killed, and only the supervisor's report
        says how it ended. On a busy machine the report of a child that something killed comes later than that.
        """
        with contextlib.suppress(TimeoutError):
            if patience_s and self._report is None:
                async with asyncio.timeout(patience_s):
                    await self._ended()
        wall, cpu = watchdog.stop()
        if not patience_s and self._report is None and cpu is not None and not watchdog.exceeded and not self.limits.allow:
            return self._conclude(Reply(b"f"), None, cpu, wall, None)
        report = await self.end()
        return self._conclude(Reply(), watchdog.exceeded, report.cpu_s, wall, None)

    async def _test(self, turn: Callable[[], Awaitable[Reply]], most_s: tuple[float, float] | None = None) -> Execution:
        self.tests += 1
        watchdog = self._watchdog
        if watchdog is None:
            watchdog = self._watchdog = Watchdog(self._pid, self.limits.cpu_s, self.limits.wall_s, self._worker.kill)
        watchdog.start(most_s)
        broken: str | None = None
        reply = Reply()
        try:
            reply = await turn()
        except (EOFError, OSError):
            await self._ended()  # it died, or closed the connection and goes on: the watchdog is still running
        except (BadValueError, IndexError) as error:
            broken = f"It sent back what is no value ({error})."
        finally:
            wall, cpu = watchdog.stop()
        whole = bool(self.limits.allow)  # with several processes, or files, only the end of everything tells
        if reply.last or broken or reply.too_large or watchdog.exceeded or whole:
            await self.end()
        if self._report is not None and (cpu is None or reply.reported is None or whole):
            cpu = self._report.cpu_s - watchdog.cpu_before
        return self._conclude(reply, watchdog.exceeded, max(cpu or 0.0, 0.0), wall, broken)

    def _conclude(self, reply: Reply, exceeded: str | None, cpu: float, wall: float, broken: str | None) -> Execution:
        if self._report is not None:
            self._peak = self._report.peak_bytes
        elif cpu > QUICK_S or not self._peak:
            self._peak = peak_bytes(self._pid)
        peak = self._peak
        out, err = self._streams.sizes()
        self.last_out_bytes = out
        output = self._streams.output(min(out, self.limits.output_bytes))
        tail = self._streams.error_tail(err, TAIL_BYTES)
        evidence = Evidence(
            limits=self.limits,
            reported=reply.reported,
            status=reply.status,
            report=self._report,
            exceeded=exceeded,
            cpu_s=cpu,
            wall_s=wall,
            own_bytes=max(0, peak - self._worker.base_bytes),
            out_bytes=out,
            err_bytes=err,
        )
        if reply.too_large:
            diagnosis = Diagnosis(Ending.output_limit, f"It returned more than {self.limits.output_bytes} bytes.")
        else:
            diagnosis = diagnose(evidence)
            if broken and diagnosis.ending in (Ending.finished, Ending.crashed):
                diagnosis = Diagnosis(Ending.crashed, broken)
        self.disturbed = killed_from_outside(evidence) and diagnosis.signal == signal.SIGKILL
        return Execution(
            ending=diagnosis.ending,
            stdout=output,
            stderr_tail=tail,
            exit_code=diagnosis.exit_code,
            signal=diagnosis.signal,
            usage=Usage(cpu, wall, peak),
            value=reply.value if diagnosis.ending is Ending.finished else None,
            detail=diagnosis.detail,
        )

    @property
    def alive(self) -> bool:
        """Whether it can serve another test."""
        return self._report is None

    async def _ended(self) -> Report:
        if self._report is None:
            self._report = await self._worker.report()
        return self._report

    async def end(self) -> Report:
        """Kills it if it runs and waits until it is gone; the worker is free afterwards."""
        if self._report is None:
            self._worker.kill()
        return await self._ended()

    def _release(self, gone: bool) -> None:
        if self._watchdog is not None:
            self._watchdog.close()
        if self._channel is not None:
            self._channel.close()
        self._worker.stream_pool.give_back(self._streams, unused=gone)

    def abandon(self) -> None:
        """Lets go of it at once, whatever it is doing; if it still ran, its worker is lost too."""
        self._release(self._report is not None)
        if self._report is None:
            with contextlib.suppress(GoneError):
                self._worker.kill()
            self._worker.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._report is None:
            try:
                self._worker.dismiss(self._release)  # the worker reports its end before it serves again
                return
            except GoneError:
                self.abandon()
                raise
        self.abandon()
