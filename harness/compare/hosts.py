"""Where numbers come from: which machines and devices, and whether they may be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from harness.compare.pairs import Pair, Side
from harness.errors import UsageError
from harness.records.comparison import MachineFacts, Row, SelfcheckFacts, SideFacts

Environment = Mapping[str, Mapping[str, Any]]
_SELFCHECK = TypeAdapter(SelfcheckFacts)


def describe_machine(environment: Environment) -> str:
    """`machine 3f2a91c04b7e (virtual), AMD EPYC, 2 cores, Debian GNU/Linux 12`, as far as it is known."""
    machine, cpu = environment.get("machine", {}), environment.get("cpu", {})
    parts = [
        f"machine {machine['id']}{' (virtual)' if machine.get('virtual') else ''}" if "id" in machine else "",
        str(cpu.get("model", "")),
        _cores(cpu.get("usable_cores")),
        str(machine.get("distribution", machine.get("system", ""))),
    ]
    return ", ".join(part for part in parts if part) or "a machine of which nothing is known"


def _cores(number: int | None) -> str:
    return "" if number is None else "1 core" if number == 1 else f"{number} cores"


def side_facts(side: Side, label: str) -> SideFacts:
    """What a report says of a side."""
    header = side.run.header
    return SideFacts(
        label=label,
        run=header.id,
        suite=header.suite,
        started=header.started,
        toolchains=tuple(
            f"{one.version} ({one.revision[:10]})" if one.revision else one.version for one in header.toolchains
        ),
        machine=describe_machine(header.environment),
    )


def machine_facts(environment: Environment, rows: Iterable[Row]) -> MachineFacts:
    """This machine, its rate of false alarms, and what the controls of this comparison showed."""
    controls = [row for row in rows if row.control]
    return MachineFacts(
        description=describe_machine(environment),
        selfcheck=selfcheck_of(environment),
        controls=len(controls),
        controls_flagged=sum(row.verdict in ("regressed", "improved") for row in controls),
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
