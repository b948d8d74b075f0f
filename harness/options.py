"""What several commands let a user choose: each option, its default and its help are said once.

A command's options are a frozen dataclass that inherits groups of these. Where an option has another help in one
command, that command's docstring says it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

from cyclopts import Parameter
from cyclopts.validators import Number

_Options = TypeVar("_Options")
_UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d*\.?\d+(?:e[+-]?\d+)?)\s*([smh]?)")


def _as_seconds(_: Any, tokens: Sequence[Any]) -> float:
    text = tokens[0].value
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no time; write 90s, 15m or 2h")
    return float(found[1]) * _UNITS_S[found[2]]


# Of what has rows; junit is of what can fail, for CI systems.
TableFormat = Literal["terminal", "markdown", "json", "csv"]
Format = Literal[TableFormat, "junit"]
PageFormat = Literal["terminal", "markdown", "json"]
DataFormat = Literal["terminal", "json"]
Positive = Annotated[float, Parameter(validator=Number(gt=0, lt=10_000_000))]
# A time such as 90, 90s, 15m or 1.5h.
SecondsOrNone = Annotated[float, Parameter(converter=_as_seconds, n_tokens=1, validator=Number(gte=0, lt=10_000_000))]
Seconds = Annotated[SecondsOrNone, Parameter(validator=Number(gt=0, lt=10_000_000))]
Share = Annotated[float, Parameter(validator=Number(gt=0, lt=1))]
Whole = Annotated[int, Parameter(validator=Number(gte=0))]
Count = Annotated[int, Parameter(validator=Number(gte=1))]
Flag = Annotated[bool, Parameter(negative="")]
Strings = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]
CompileTimeout = Annotated[Seconds, Parameter(name="--compile-timeout")]
# Of a history: runs with the tag experiment too.
Everything = Annotated[bool, Parameter(name="--all", negative="")]
# Seconds after which a turn is stopped, where the user says nothing else.
CALL_LIMIT_S = 300.0
# Names the folder of this machine's certificate, for every command of a fleet.
CERTIFICATES_VARIABLE = "HARNESS_FLEET_CERTIFICATES"


def option_of(kind: type, name: str) -> str:
    """What a user writes for a field of a command's options: `--filter` for `patterns`, `SIDES` for `sides`."""
    field = next(field for field in fields(kind) if field.name == name)
    said = getattr(get_type_hints(kind, include_extras=True)[name], "__metadata__", ())
    names = [written for each in said if isinstance(each, Parameter) for written in each.name or ()]
    return names[-1] if names else f"--{name.replace('_', '-')}" if field.kw_only else name.upper()


def command_options(kind: type[_Options]) -> type[_Options]:
    """Put a dataclass of options flat on the command line: first its own, then those of the groups that it inherits."""
    declared = kind.__dataclass_fields__  # type: ignore[attr-defined]
    inherited = [field.name for group in kind.__bases__ if is_dataclass(group) for field in fields(group)]
    own = [name for name in declared if name in kind.__annotations__ and name not in inherited]
    named_by_place = [name for name, field in declared.items() if not field.kw_only]  # before all that have names
    kind.__dataclass_fields__ = {name: declared[name] for name in (*named_by_place, *own, *inherited)}  # type: ignore[attr-defined]
    # Groups are of other modules, whose names the command line would look up in this one's.
    kind.__init__.__annotations__ = get_type_hints(kind, include_extras=True)
    return Parameter(name="*")(kind)


@dataclass(frozen=True, kw_only=True)
class Quiet:
    """What a command says while it works.

    Attributes:
        quiet: Print the result and errors, and nothing while it works.
    """

    quiet: Annotated[bool, Parameter(name=("--quiet", "-q"), negative="")] = False


@dataclass(frozen=True, kw_only=True)
class Loudness(Quiet):
    """The same, and what tools say.

    Attributes:
        verbose: Show what rewrites of plugins print, and all that a compiler prints that fails.
    """

    verbose: Annotated[bool, Parameter(name=("--verbose", "-v"), negative="")] = False


@dataclass(frozen=True, kw_only=True)
class Toolchains:
    """Under which releases.

    Attributes:
        toolchains: Release of IREE, as in 3.12.0, installed into the cache once; a folder that holds a build or wheels;
            wheels of CI, as in pr:24701 or main; of run, list, check and bench a range of releases too, as in
            3.0.0..3.13.0; repeatable: the others are compared with the first (default: the one that is installed).
    """

    toolchains: Annotated[Strings, Parameter(name="--toolchain")] = ()


@dataclass(frozen=True, kw_only=True)
class Results:
    """Where what is made is kept.

    Attributes:
        results: Where the run's directory goes.
    """

    results: Path = Path("results")


@dataclass(frozen=True, kw_only=True)
class Compiling:
    """How modules are compiled.

    Attributes:
        compile_timeout_s: Seconds after which a compile is stopped.
    """

    compile_timeout_s: CompileTimeout = 900.0


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Beside whom something is measured.

    Attributes:
        wait: Wait while another harness measures on this machine; else measure beside it.
    """

    wait: bool = True


@dataclass(frozen=True, kw_only=True)
class Timing(Waiting):
    """How turns are timed.

    Attributes:
        call_timeout_s: Seconds after which a turn is stopped.
    """

    call_timeout_s: Annotated[Seconds, Parameter(name="--call-timeout")] = CALL_LIMIT_S


@dataclass(frozen=True, kw_only=True)
class Judging:
    """How what is timed is judged.

    Attributes:
        floor: Relative change of latency below which nothing is called changed (default: the suite's, else 0.01).
        seed: Of the order of turns.
    """

    floor: Share | None = None
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Membership:
    """Who this machine is in a fleet.

    Attributes:
        certificates: Folder of this machine's certificate in its fleet (default: fleet in the user's configuration
            folder).
        trust_network: Use tcp:// beyond this machine too, where whoever reaches the port runs programs on the whole
            fleet.
    """

    certificates: Annotated[Path | None, Parameter(env_var=CERTIFICATES_VARIABLE)] = None
    trust_network: Flag = False

    def words_to_join(self, fleet: str | None) -> list[str]:
        """The options with which another command joins the fleet of that scheduler; of none, [] for this machine."""
        if not fleet:
            return []
        certificates = [] if self.certificates is None else ["--certificates", str(self.certificates)]
        return ["--fleet", fleet, *certificates, *(["--trust-network"] if self.trust_network else [])]


@command_options
@dataclass(frozen=True, kw_only=True)
class OnFleet(Membership):
    """On which machines it is done.

    Attributes:
        fleet: Compile and measure on the hosts of a fleet: the address of its scheduler, as in tls://bench:8786
            (default: on this machine).
    """

    fleet: str | None = None
