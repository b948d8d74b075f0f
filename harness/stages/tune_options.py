"""What a user can choose: the signature of `harness tune`, and its help."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from harness.compare.options import CALL_LIMIT_S
from harness.options import Flag, Positive, Quiet, Share, Verbose
from harness.stages.options import CompileTimeout

_UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)")


def seconds_of(text: str) -> float:
    """Seconds of a time such as `90`, `90s`, `15m` or `1.5h`."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or not float(found[1]):
        raise ValueError(f"{text!r} is no time; write 90s, 15m or 2h")
    return float(found[1]) * _UNITS_S[found[2]]


def _as_seconds(_: Any, tokens: Sequence[Any]) -> float:
    return seconds_of(tokens[0].value)


@Parameter(name="*")
@dataclass(frozen=True)
class TuneOptions:
    """What a user can choose about a search for what makes models fast.

    Attributes:
        suite: The suite's TOML file.
        models: This model of the suite; repeatable (default: all).
        device: On this device (default: the suite's first).
        start: The variant that the search begins with and that everything is held against (default: the baseline).
        budget: Time for each model, as in 90s, 15m or 2h; confirmations are part of it.
        out: The folder that everything goes to; a search that was stopped goes on there with the same command.
        without: None of these changes; shell patterns over flag sets and plugins; repeatable.
        lowering: Tune the lowering configurations of dispatches too; else only flags and plugins.
        toolchain: Under this release (default: the one that is installed).
        report: Print what the searches in --out found, again; nothing is measured.
        floor: Relative change below which nothing counts as faster (default: the suite's, else 0.01).
        seed: Of the order of turns and of the sampler.
        compile_timeout: Seconds after which a compile is stopped.
        compile_memory: GiB of memory at which a compile is stopped (default: 80 % of the machine's).
        call_timeout: Seconds after which a turn is stopped.
        wait: Wait while another harness measures on this machine; else measure beside it.
        quiet: Print the result and errors, and nothing while it works.
        verbose: Say of each candidate what became of it.
    """

    suite: Path | None = None
    _: KW_ONLY
    models: Annotated[tuple[str, ...], Parameter(name="--model", negative="", show_default=False)] = ()
    device: str | None = None
    start: Annotated[str | None, Parameter(name="--variant")] = None
    budget: Annotated[float, Parameter(converter=_as_seconds, n_tokens=1, show_default=lambda _: "15m")] = 900.0
    out: Path = Path("tuned")
    without: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = ()
    lowering: bool = True
    toolchain: str | None = None
    report: Flag = False
    floor: Share | None = None
    seed: int = 0
    compile_timeout: CompileTimeout = 300.0
    compile_memory: Annotated[Positive | None, Parameter(name="--compile-memory")] = None
    call_timeout: Positive = CALL_LIMIT_S
    wait: bool = True
    quiet: Quiet = False
    verbose: Annotated[Verbose, Parameter(help="Say of each candidate what became of it.")] = False
