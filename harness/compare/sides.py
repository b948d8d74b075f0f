"""The two sides: what a user calls them -> runs and toolchains, where these come from, and whether they compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from harness.cache import environments_root
from harness.compare.judge import CHANGED
from harness.compare.pairs import TOOLCHAIN_PREFIX, Pair, Side, is_toolchain, side_of
from harness.errors import RunError, ToolchainError, UsageError
from harness.records.comparison import MachineFacts, Row, SelfcheckFacts, SideFacts
from harness.records.run import Header
from harness.store.run_directory import load_run
from harness.toolchain import Toolchain, get_toolchains

RunSuite = Callable[[Path, Toolchain], Path]
Environment = Mapping[str, Mapping[str, Any]]
_SELFCHECK = TypeAdapter(SelfcheckFacts)


def require_two(sides: Sequence[str], toolchains: Sequence[str], within: Path | None) -> tuple[str, str]:
    """The two sides, from positional arguments and `--toolchain` options in this order; of `--within`, its run twice.

    Raises:
        UsageError: There are not exactly two.
    """
    given = [*sides, *(name if is_toolchain(name) else f"{TOOLCHAIN_PREFIX}{name}" for name in toolchains)]
    if within is not None:
        if given:
            raise UsageError(f"--within {within} compares the variants of that run; leave out {', '.join(given)}")
        return str(within), str(within)
    if len(given) != 2:
        raise UsageError(
            "give two sides, as in `harness compare results/base results/head`; each is a run directory or a "
            "toolchain such as iree==3.12.0; or --within with one run"
        )
    return given[0], given[1]


def resolve(
    sides: tuple[str, str], suite: Path | None, run_suite: RunSuite, on_install: Callable[[str], None]
) -> tuple[Side, Side]:
    """Both sides as runs; a toolchain's is made now: its modules are compiled and checked, and nothing is timed.

    Args:
        suite: That toolchains are compiled for; None: that of the side that is a run.
        run_suite: Makes such a run and gives its directory.
        on_install: Told before something takes long.

    Raises:
        HarnessError: A directory is no run, a toolchain cannot be had or has no suite, or both sides are one run.
    """
    releases = [side for side in sides if is_toolchain(side)]
    if not releases and Path(sides[0]).resolve() == Path(sides[1]).resolve():
        raise UsageError(f"{sides[0]} is given twice; `harness compare --within {sides[0]}` compares its variants")
    runs = {side: load_run(Path(side), rounds=False) for side in sides if not is_toolchain(side)}
    if suite is None and not runs:
        raise UsageError("two toolchains are compared on a suite; give one with --suite, as in --suite suites/x.toml")
    suite = suite or Path(next(iter(runs.values())).header.suite)
    toolchains = [get_toolchains([side], root=environments_root(), on_install=on_install)[0] for side in releases]
    for side, toolchain in zip(releases, toolchains, strict=True):  # which takes long, after all that may be wrong
        runs[side] = load_run(run_suite(suite, toolchain))
    base, head = (side_of(runs[side], side, None if side in releases else Path(side)) for side in sides)
    return base, head


def toolchains_here(sides: Sequence[Side], on_install: Callable[[str], None]) -> Mapping[str, Toolchain]:
    """The toolchains of all cases of these sides, by release; installed where they are not here.

    Raises:
        ToolchainError: One cannot be had, or its compiler is another one than the run's.
    """
    versions = list(dict.fromkeys(version for side in sides for version in side.toolchains))
    found = get_toolchains(versions, root=environments_root(), on_install=on_install)
    if len(found) < len(versions):
        raise RunError("a run names one release of IREE in two ways; make it again")
    here = dict(zip(versions, found, strict=True))
    for side in sides:  # both may be of one release, and of two builds of it
        for version, record in side.toolchains.items():
            if here[version].compiler_sha256 != record.compiler_sha256:
                raise ToolchainError(
                    f"{side.label}: IREE {version} here has another compiler than the run's; make the run again"
                )
    return here


def machine_name(environment: Environment) -> str:
    """`machine 3f2a91c04b7e (virtual)`: the same words for the same machine, which do not tell its name."""
    machine = environment.get("machine", {})
    return f"machine {machine['id']}{' (virtual)' if machine.get('virtual') else ''}" if "id" in machine else ""


def describe_machine(environment: Environment) -> str:
    """`machine 3f2a91c04b7e (virtual), AMD EPYC, 2 cores, Debian GNU/Linux 12`, as far as it is known."""
    machine, cpu = environment.get("machine", {}), environment.get("cpu", {})
    cores = cpu.get("usable_cores")
    parts = [
        machine_name(environment),
        str(cpu.get("model", "")),
        "" if cores is None else f"{cores} core{'' if cores == 1 else 's'}",
        str(machine.get("distribution", machine.get("system", ""))),
    ]
    return ", ".join(part for part in parts if part) or "a machine of which nothing is known"


def describe_toolchains(header: Header) -> tuple[str, ...]:
    """Release and revision of each: `3.12.0 (f17ed20a11)`."""
    return tuple(
        f"{record.version} ({record.revision[:10]})" if record.revision else record.version
        for record in header.toolchains
    )


def side_facts(side: Side, label: str, variants: Iterable[str] = ()) -> SideFacts:
    """What a report says of a side.

    Args:
        variants: Those that are compared within one run; a name may be there several times.
    """
    header = side.run.header
    return SideFacts(
        label=label,
        run=header.id,
        suite=header.suite,
        started=header.started,
        toolchains=describe_toolchains(header),
        machine=describe_machine(header.environment),
        variants=tuple(dict.fromkeys(variants)),
    )


def machine_facts(environment: Environment, rows: Iterable[Row]) -> MachineFacts:
    """This machine, its rate of false alarms, and what the controls of this comparison showed."""
    controls = [row for row in rows if row.control]
    return MachineFacts(
        description=describe_machine(environment),
        selfcheck=selfcheck_of(environment),
        controls=len(controls),
        controls_flagged=sum(row.verdict in CHANGED for row in controls),
    )


def selfcheck_of(environment: Environment) -> SelfcheckFacts | None:
    """What the machine's last selfcheck found, where the environment has it."""
    facts = environment.get("selfcheck")
    try:
        return _SELFCHECK.validate_python(dict(facts)) if facts else None
    except ValidationError:
        return None


def require_comparable(base: Side, head: Side, pairs: Sequence[Pair], *, across_hosts: bool) -> None:
    """Refuse to compare recorded numbers of different machines or devices, unless that is what was asked for.

    Raises:
        UsageError: They differ; the message says how.
    """
    if across_hosts or base is head:
        return
    environments = [side.run.header.environment for side in (base, head)]
    ids = [environment.get("machine", {}).get("id") for environment in environments]
    advice = "measure both on one machine, or give --across-hosts to compare them all the same"
    if None in ids:
        raise UsageError(f"whether {base.label} and {head.label} were measured on one machine is not known; {advice}")
    if ids[0] != ids[1]:
        said = "; ".join(describe_machine(environment) for environment in environments)
        raise UsageError(f"{base.label} and {head.label} were measured on different machines ({said}); {advice}")
    for device in dict.fromkeys(pair.case.device for pair in pairs):
        facts = [environment.get("devices", {}).get(device, "") for environment in environments]
        if facts[0] != facts[1]:
            raise UsageError(
                f"device {device} was {facts[0] or 'not there'} in {base.label} and {facts[1] or 'not there'} in "
                f"{head.label}; {advice}"
            )
