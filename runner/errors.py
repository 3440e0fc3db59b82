"""What can go wrong in a runner, as one tree, and the exit codes that tell it to whoever started the container.

    RunnerError
    ├── BootRefused            the line on standard input is not a boot configuration
    ├── ClaimRefused           the orchestrator does not give this runner a run
    ├── RunFailed              the whole run ends early, with a reason from the contract
    ├── ProblemError           a problem was not delivered, or its record cannot be understood
    └── CallError              a model call that got no answer
        ├── GatewayAway        nobody answered, or the stream was cut; asking again costs nothing
        ├── CallsEnded         the run ends early, so that this call is not made any more
        ├── BudgetExhausted    a budget does not allow this call
        ├── PriceUnknown       a budget applies, and the model has no price
        └── ProviderFailed     the provider refused or failed, after the gateway's retries

Standard library only: it is loaded before the first request goes out.
"""

EXIT_DONE = 0  # the last event is acknowledged, or the run was cancelled
EXIT_REFUSED = 2  # no usable boot configuration, or no run given
EXIT_SUPERSEDED = 3  # another attempt has taken over, or the token is dead
EXIT_FAILED = 4  # the run failed, and the orchestrator knows
EXIT_CRASHED = 5  # the runner itself failed
EXIT_ABANDONED = 6  # the orchestrator did not come back
EXIT_TERMINATED = 143  # SIGTERM

SCOPE_RUN = "run"  # `contract.ErrorScope.RUN`; this module imports nothing


class RunnerError(Exception):
    """Base of all errors of the runner."""


class BootRefused(RunnerError):
    """The line on standard input is not a boot configuration."""


class ClaimRefused(RunnerError):
    """The orchestrator does not give this runner a run."""


class RunFailed(RunnerError):
    """The whole run ends early; `reason` is a `contract.FailureReason`, `code` the error code of a job about evals."""

    def __init__(self, reason: str, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.code = code


class ProblemError(RunnerError):
    """A problem was not delivered, or its record cannot be understood."""


class CallError(RunnerError):
    """A model call got no answer."""


class GatewayAway(CallError):
    """Nobody answered, or the answer was cut off; the gateway keeps the answer, so asking again costs nothing."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class CallsEnded(CallError):
    """The run ends early: a call that waited for its turn is not made any more."""


class BudgetExhausted(CallError):
    """The run's budget, or a limit for the day, does not allow another call."""


class PriceUnknown(CallError):
    """A budget or limit applies, and the model has no price: no call can be allowed."""


class ProviderFailed(CallError):
    """The provider refused or failed, after all retries of the gateway."""

    def __init__(self, message: str, status: int = 0, scope: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.scope = scope or (SCOPE_RUN if status in (401, 403, 404) else "unknown")
        """A `contract.ErrorScope`. A gateway that does not say it is read by its status."""

    @property
    def refused(self) -> bool:
        """A status that the same request will meet again: not that of a busy or failing server."""
        return 400 <= self.status < 500 and self.status not in (408, 409, 425, 429)

    @property
    def hopeless(self) -> bool:
        """Every other call will meet it as well: a wrong key, no such model, a parameter that is refused."""
        return self.scope == SCOPE_RUN
