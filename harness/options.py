"""Types that several commands' options have: what is checked, what `--help` says, and how a command repeats them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

Format = Literal["terminal", "markdown", "json", "csv"]
Positive = Annotated[float, Parameter(validator=Number(gt=0, lt=10_000_000))]
Share = Annotated[float, Parameter(validator=Number(gt=0, lt=1))]
Whole = Annotated[int, Parameter(validator=Number(gte=0))]
Count = Annotated[int, Parameter(validator=Number(gte=1))]
Flag = Annotated[bool, Parameter(negative="")]
Patterns = Annotated[
    tuple[str, ...],
    Parameter(
        name="--filter",
        negative="",
        show_default=False,
        help="Only cases whose name matches; shell patterns; repeatable.",
    ),
]
Quiet = Annotated[
    bool,
    Parameter(name=("--quiet", "-q"), negative="", help="Print the result and errors, and nothing while it works."),
]
Verbose = Annotated[
    bool,
    Parameter(
        name=("--verbose", "-v"),
        negative="",
        help="Show what rewrites of plugins print, and all that a compiler prints that fails.",
    ),
]
Tags = Annotated[
    tuple[str, ...],
    Parameter(name="--tag", negative="", show_default=False, help="Only cases with this tag; repeatable."),
]
Toolchains = Annotated[
    tuple[str, ...],
    Parameter(
        name="--toolchain",
        negative="",
        show_default=False,
        help="Release of IREE, as in 3.12.0, installed into the cache once; of run, list, check and bench a range too, "
        "as in 3.0.0..3.13.0; repeatable: the others are compared with "
        "the first (default: the one that is installed).",
    ),
]
# Names the folder of this machine's certificate, for every command of a fleet.
CERTIFICATES_VARIABLE = "HARNESS_FLEET_CERTIFICATES"
Certificates = Annotated[
    Path | None,
    Parameter(
        name="--certificates",
        env_var=CERTIFICATES_VARIABLE,
        help="Folder of this machine's certificate in its fleet (default: fleet in the user's configuration folder).",
    ),
]
TrustNetwork = Annotated[
    bool,
    Parameter(
        name="--trust-network",
        negative="",
        help="Use tcp:// beyond this machine too, where whoever reaches the port runs programs on the whole fleet.",
    ),
]
FleetAddress = Annotated[
    str | None,
    Parameter(
        name="--fleet",
        help="Compile and measure on the hosts of a fleet: the address of its scheduler, as in tls://bench:8786 "
        "(default: on this machine).",
    ),
]


def fleet_words(fleet: str, certificates: Path | None, *, trust_network: bool) -> list[str]:
    """The options with which another command joins the same fleet.

    Args:
        fleet: The address of its scheduler.
    """
    return [
        *("--fleet", fleet),
        *([] if certificates is None else ["--certificates", str(certificates)]),
        *(["--trust-network"] if trust_network else []),
    ]
