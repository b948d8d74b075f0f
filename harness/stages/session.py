"""What comparisons, explanations, bisects and searches share: how they begin, go on, compile and measure."""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from harness.cache import environments_root
from harness.compare.options import CompareOptions
from harness.compare.samplers import MeasurementPolicy
from harness.compare.sides import noise_of
from harness.errors import RunError, UsageError
from harness.machine.identity import machine_id
from harness.options import Results
from harness.process import Limits
from harness.stages.options import ExplainOptions, OneCase, RunOptions, TuneOptions, compile_limits
from harness.stats.rule import Rule
from harness.store.files import adapter
from harness.store.journal import Begun
from harness.store.kinds import Kind
from harness.store.run_directory import HEADER_FILE
from harness.toolchain import Toolchain, find_toolchain, get_toolchains
from harness.toolchain.host_cpu import environment_here

Measuring = CompareOptions | ExplainOptions | OneCase | TuneOptions
_Options = TypeVar("_Options", bound=Results)
# Options of a run that are those of the command for which it is made.
_OF_COMMAND = ("results", "patterns", "compile_timeout_s", "call_timeout_s", "wait", "verbose")
_OF_STRETCH = ("wait", "quiet", "verbose")


def begun_now(options: Any, command: Sequence[str]) -> dict[str, Any]:
    """What a session is begun with, as the fields of a `Begun`."""
    environment = environment_here()
    return {
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": machine_id(environment),
        "noise": noise_of(environment),
        "options": adapter(type(options)).dump_python(options, mode="json"),
        "command": tuple(command),
    }


def options_going_on(
    given: _Options,
    begun: Begun,
    folder: Path,
    kind: Kind[Any],
    *,
    stretch: Sequence[str] = (),
    if_given: Sequence[str] = (),
) -> _Options:
    """The options that a session was begun with, on this machine.

    Args:
        stretch: Options that each stretch has anew, beside how loud it is.
        if_given: Options that may be given anew.
    """
    if begun.machine != machine_id(environment_here()):
        raise RunError(f"{folder}: was begun on another machine; go on there, or begin it again")
    default, stretch = type(given)(), (*_OF_STRETCH, *stretch)
    names = [field.name for field in fields(given)]
    changed = [name for name in names if getattr(given, name) != getattr(default, name)]
    if refused := [name for name in changed if name not in ("resume", "results", *stretch, *if_given)]:
        raise UsageError(f"--resume goes on with the {kind.name}'s own settings; leave out {', '.join(refused)}")
    try:
        before: _Options = adapter(type(given)).validate_python(begun.options)
    except ValidationError:
        raise RunError(f"{folder / kind.begun_file}: is damaged; make the {kind.name} again") from None
    anew = {name: getattr(given, name) for name in names if name in stretch or (name in if_given and name in changed)}
    return replace(before, results=folder.parent, **anew)


def begun_run(begun: Begun | None, name: str) -> Path | None:
    """The run that was made or begun for a side or a position, where it is still there."""
    kept = begun.runs.get(name) if begun is not None else None
    return Path(kept) if kept is not None and (Path(kept) / HEADER_FILE).is_file() else None


def unmeasured(options: Measuring, suite: Path, case: str | None = None, **more: Any) -> RunOptions:
    """A run that compiles and checks for a command, and times nothing."""
    shared = {name: getattr(options, name) for name in _OF_COMMAND if hasattr(options, name)}
    patterns = {} if case is None else {"patterns": (glob.escape(case),)}
    return RunOptions(suite, measure=False, **{**shared, **patterns, **more})


def policy_of(
    options: Measuring, rule: Rule, *, budget_s: float, cap_s: float, noise: float, limits: Limits | None = None
) -> MeasurementPolicy:
    """How two modules are measured beside each other."""
    return MeasurementPolicy(
        rule=rule,
        budget_s=budget_s,
        cap_s=cap_s,
        seed=options.seed,
        call_limit_s=options.call_timeout_s,
        limits=limits or compile_limits(options.compile_timeout_s),
        noise=noise,
        wait=options.wait,
    )


def toolchain_named(release: str | None, note: Callable[[str], None]) -> Toolchain:
    """The toolchain of a release, installed where it is not here; of None the one that is."""
    if release is None:
        return find_toolchain()
    (found,) = get_toolchains([release], root=environments_root(), on_install=note)
    return found
