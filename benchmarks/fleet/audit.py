"""Whether a run folder has everything once: what each case and each generation of each group has come to."""

from collections import Counter, defaultdict
from dataclasses import dataclass

from harness.records.run import Build, Check, Lost, Round, Run


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What is in a run.

    Attributes:
        generations: That were planned, of all groups.
        whole: Of these, how many are there, from one host, with all cases that did not fail.
        reported: How many are not there since all cases of their group are reported as failed.
        reasons: That cases are reported with, once each.
        lost: Neither the one nor the other, and cases without a build, a check or a report; what they are.
        twice: What is there more than once.
        moved: Groups that began again on another host.
    """

    generations: int
    whole: int
    reported: int
    reasons: tuple[str, ...]
    lost: tuple[str, ...]
    twice: tuple[str, ...]
    moved: int


def audit(run: Run, generations: int) -> Audit:
    """Look a run over, as it was read back.

    Args:
        generations: Planned for each group.
    """
    failed = {record.case for record in _failures(run)}
    alive: dict[str, set[str]] = defaultdict(set)
    for case in run.header.cases:
        alive[case.group] |= {case.name} - failed
    rounds: dict[tuple[str, int], list[Round]] = defaultdict(list)
    for each in run.rounds:
        rounds[each.group, each.generation].append(each)
    lost, twice = _once_each(run, failed)
    whole = reported = 0
    for group, cases in alive.items():
        for generation in range(generations):
            own = rounds.get((group, generation), [])
            if not cases and not own:
                reported += 1
                continue
            said = f"{group} generation {generation}"
            wrong = _wrong(own, cases, run.host_of_group.get(group, ""))
            again = [number for number, count in Counter(each.round for each in own).items() if count > 1]
            whole += not wrong and not again
            lost += [f"{said}: {wrong}"] if wrong else []
            twice += [f"{said}: rounds {again}"] if again else []
    return Audit(
        generations=generations * len(alive),
        whole=whole,
        reported=reported,
        reasons=tuple(sorted({record.failure.message for record in _failures(run) if record.failure})),
        lost=tuple(lost),
        twice=tuple(twice),
        moved=len({placed.group for placed in run.placed if placed.attempt}),
    )


def _failures(run: Run) -> list[Build | Check | Lost]:
    """What is reported of cases that failed at any stage."""
    records: list[Build | Check | Lost] = [*run.builds, *run.checks, *run.lost]
    return [record for record in records if record.failure is not None]


def _once_each(run: Run, failed: set[str]) -> tuple[list[str], list[str]]:
    """What is missing of builds, checks and references, and what is there more than once."""
    lost, twice = [], []
    for what, records in (("build", run.builds), ("check", run.checks), ("reference", run.references)):
        counts = Counter(record.case for record in records)
        lost += [
            f"{case.name}: no {what}" for case in run.header.cases if not counts[case.name] | (case.name in failed)
        ]
        twice += [f"{name}: {count} records of its {what}" for name, count in counts.items() if count > 1]
    return lost, twice


def _wrong(rounds: list[Round], cases: set[str], host: str) -> str:
    """Why a generation is not whole; "": it is."""
    if not rounds:
        return "is not there"
    numbers = sorted({each.round for each in rounds})
    if numbers != list(range(len(numbers))):
        return f"has the rounds {numbers}"
    if any(each.host != host for each in rounds):
        return f"is not of {host} alone"
    if any(cases - {turn.case for turn in each.turns} for each in rounds):
        return "lacks cases"
    return ""
