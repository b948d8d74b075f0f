"""Every error a user can meet. Each is one sentence: what is wrong, where, and what to do."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path


class ExitCode(IntEnum):
    """What the process's exit status says; contract of docs/architecture.md."""

    OK = 0
    REGRESSION = 1
    USAGE = 2
    CASE_FAILED = 3
    INCONCLUSIVE = 4
    INTERNAL = 70  # EX_SOFTWARE of sysexits.h: a defect of the harness
    INTERRUPTED = 130  # 128 + SIGINT, as shells have it


class HarnessError(Exception):
    """An error that the user reads as one sentence, without a traceback."""

    exit_code = ExitCode.USAGE


class UsageError(HarnessError):
    """The command line or the configuration is wrong."""


class NothingSelected(UsageError):
    """--filter and --tag match no case of a suite."""


class SuiteError(UsageError):
    """A suite, flag-set or model file is wrong; the message names file, table and key."""


class ToolchainError(UsageError):
    """IREE's tools are missing or do not belong together."""


class NoToolchain(ToolchainError):
    """What a folder holds is none, or none that works here."""


class RunError(UsageError):
    """A run directory cannot be read, resumed or written."""


class PlaceGone(RunError):
    """The fleet on which something was done has gone; what has arrived is kept, and it can go on."""

    # What another harness says is read by these words.
    _KEPT = "; what has arrived is kept: go on with"

    def __init__(self, what: str, go_on: str = "") -> None:
        """Say what has gone, as a clause, and how to go on; "": who catches this knows it, or there is nothing yet."""
        super().__init__(f"{what}{self._KEPT} `{go_on}`" if go_on else what)
        self.what = what

    @classmethod
    def said_in(cls, sentence: str) -> str | None:
        """What has gone, where this is what another harness says at its end; None: it ended for another reason."""
        what, kept, _ = sentence.partition(cls._KEPT)
        return what if kept else None


class GitHubError(UsageError):
    """GitHub's API refuses something, or does not answer."""

    def __init__(self, message: str, *, status: int = 0, uncertain: bool = False) -> None:
        super().__init__(message)
        self.status = status  # HTTP's of the answer; 0: there was none
        self.uncertain = uncertain  # Whether GitHub may have done the request all the same


class CaseError(HarnessError):
    """One case failed at a stage of its way."""

    exit_code = ExitCode.CASE_FAILED

    def __init__(self, stage: str, message: str, stderr: str = "") -> None:
        super().__init__(message)
        self.stage = stage  # `model`, `compile`, `ir`, `verify`, `measure` or `reference`
        self.stderr = stderr  # The last lines that the failing tool printed, possibly empty


class NoHost(CaseError):
    """No host of a fleet is left that can go on with it now; another day there may be one."""


class Interrupted(HarnessError):
    """The user stopped it."""

    exit_code = ExitCode.INTERRUPTED

    def __init__(self, message: str, *, run: Path | None = None) -> None:
        super().__init__(message)
        self.run = run  # The directory of the run that it was in the middle of; None: there is none
