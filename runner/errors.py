"""All errors of a runner as one tree, and the exit codes that report them to whatever started the container.

    RunnerError
    ├── BootRefused            the line on standard input is not a boot configuration
    ├── ClaimRefused           the orchestrator does not give this runner a run
    ├── RunFailed              the whole run ends early, with a reason from the contract
    ├── RunDeferred            the rest of the run waits for a batch of the provider
    ├── ProblemError           a problem was not delivered, or its record is invalid
    └── CallError              a model call got no answer
        ├── GatewayAway        no answer, or the stream was cut; a repeated call costs nothing
        ├── CallCollected      the call waits for a batch of the provider
        ├── CallsEnded         the run ends early, so this call is not made
        ├── BudgetExhausted    a budget does not allow this call
        ├── PriceUnknown       a budget applies, and the model has no price
        └── ProviderFailed     the provider refused or failed, after the gateway's retries

Standard library only, because it is imported before the first request is sent.
"""

EXIT_DONE = 0  # the last event is acknowledged, or the run was cancelled
EXIT_REFUSED = 2  # no valid boot configuration, or no run to claim
EXIT_SUPERSEDED = 3  # another attempt has taken over, or the token is no longer valid
EXIT_FAILED = 4  # the run failed, and the orchestrator knows it
EXIT_CRASHED = 5  # the runner itself failed
EXIT_ABANDONED = 6  # the orchestrator did not answer for too long
EXIT_TERMINATED = 143  # SIGTERM

SCOPE_RUN = "run"  # `contract.ErrorScope.RUN`; this module imports nothing


class RunnerError(Exception):
    """Base class of all runner errors."""


class BootRefused(RunnerError):
    """The line on standard input is not a boot configuration."""


class ClaimRefused(RunnerError):
    """The orchestrator does not give this runner a run."""


class RunFailed(RunnerError):
    """The whole run ends early; `reason` is a `contract.FailureReason`, `code` the error code of an eval job."""

    def __init__(self, reason: str, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.code = code


class RunDeferred(RunnerError):
    """The rest of the run waits for a batch of the provider: the attempt ends, and another one goes on."""

    def __init__(self, calls: int) -> None:
        super().__init__(f"{calls} calls wait for a batch of the provider")
        self.calls = calls


class ProblemError(RunnerError):
    """A problem was not delivered, or its record is invalid."""


class CallError(RunnerError):
    """A model call got no answer."""


class GatewayAway(CallError):
    """No answer, or it was cut off. The gateway stores the answer, so a repeated call costs nothing."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class CallCollected(CallError):
    """The call is answered in a batch of the provider. Another attempt will find its answer."""


class CallsEnded(CallError):
    """The run ends early: a call that was still queued is not made."""


class BudgetExhausted(CallError):
    """The run's budget, or a limit for the day, does not allow another call."""


class PriceUnknown(CallError):
    """A budget or limit applies, and the model has no price, so no call can be allowed."""


class ProviderFailed(CallError):
    """The provider refused or failed, after all retries of the gateway."""

    def __init__(self, message: str, status: int = 0, scope: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.scope = scope or (SCOPE_RUN if status in (401, 403, 404) else "unknown")
        """A `contract.ErrorScope`. If the gateway does not send one, it is derived from the status."""

    @property
    def refused(self) -> bool:
        """Whether the same request would be refused again. False for the status of a busy or failing server."""
        return 400 <= self.status < 500 and self.status not in (408, 409, 425, 429)

    @property
    def hopeless(self) -> bool:
        """Whether every other call would fail too: wrong key, unknown model, refused parameter."""
        return self.scope == SCOPE_RUN
