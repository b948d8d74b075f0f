"""A recording -> the tables of docs/seeds.md: every number in them is counted, none is typed."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.documents import replace_between
from benchmarks.plugins.ratios import Ratio, compare, fastest, median_ns, programs
from benchmarks.plugins.recorded import IREE, SGEMM, Group, Header, Recording, Round, engine_of, name_of
from harness.report.markdown import blocks, table


def write_tables(document: Path, recording: Recording) -> None:
    """Replace what stands between the document's marks of this benchmark.

    Raises:
        RuntimeError: There are no such marks.
    """
    begin, end = (f"<!-- {slash}{recording.header.benchmark} -->" for slash in ("", "/"))
    replace_between(document, begin, end, render(recording))


def render(recording: Recording) -> str:
    """What was recorded and a table for each group, as Markdown."""
    header = recording.header
    tables = []
    for group in header.groups:
        rounds = [one for one in recording.rounds if one.group == group.name]
        if rounds:
            tables += [f"{_capital(group.title)}, {group.gflop:.2f} GFLOP:", _table(header, group, rounds)]
    return blocks(_made(recording), *tables)


def _made(recording: Recording) -> str:
    header = recording.header
    generations = {one.generation for one in recording.rounds}
    rounds = {(one.group, one.generation, one.round) for one in recording.rounds}
    per_generation = len(rounds) // max(1, len({(group, generation) for group, generation, _ in rounds}))
    engines = ", ".join(f"{name} {version}" for name, version in header.versions.items() if name != SGEMM)
    return blocks(
        f"Made by `make plugins` on {header.started[:10]}: {header.machine}; {engines}; sgemm is numpy's, by "
        f"{header.versions[SGEMM]}. One thread on one core; generations (fresh processes): {len(generations)}, rounds "
        f"in each: {per_generation}. In a round every program has one turn, in an order drawn anew; programs that take "
        "over ten times as long as the fastest have theirs in the first round only. Ratios are of times, below 1 is "
        "faster: the median over generations of each one's median of rounds, in brackets the smallest and the largest.",
        *(f"Left out: {sentence}" for sentence in header.missing),
    )


def _table(header: Header, group: Group, rounds: Sequence[Round]) -> str:
    peer, sgemm = fastest(rounds, header.peer), fastest(rounds, SGEMM)
    heads = ["program", "ms", "GFLOP/s", "of sgemm", "to stock"]
    if peer is not None:
        heads += [f"to {header.peer}", f"ahead of {header.peer}"]
    rows = []
    for program in _shown(header, rounds):
        ms = median_ns(rounds, program) / 1e6
        of_sgemm = compare(rounds, sgemm, program) if sgemm else None
        cells = [
            _label(program, rounds),
            f"{ms:.2f}",
            f"{group.gflop / ms * 1e3:.1f}",
            f"{of_sgemm.centre * 100:.0f} %" if of_sgemm else "-",
            _ratio(_compare(rounds, program, _stock(header, rounds, program))),
        ]
        if peer is not None:
            against = _compare(rounds, program, peer)
            cells += [_ratio(against), _ahead(against) if engine_of(program) == IREE else "-"]
        rows.append(cells)
    return table(heads, rows, numbers=[False, *[True] * (len(heads) - 1)])


def _shown(header: Header, rounds: Sequence[Round]) -> list[str]:
    """IREE's programs in the suite's order, then the other engines' fastest."""
    measured = programs(rounds)
    others = [fastest(rounds, engine) for engine in (header.peer, SGEMM)]
    return [*(name for name in header.programs if name in measured), *(name for name in others if name is not None)]


def _stock(header: Header, rounds: Sequence[Round], program: str) -> str:
    """The baseline of the same model; for other engines, of the group's first model."""
    of = program if engine_of(program) == IREE else _shown(header, rounds)[0]
    return f"{of.rpartition('/')[0]}/{header.baseline}"


def _compare(rounds: Sequence[Round], program: str, other: str) -> Ratio | None:
    return compare(rounds, program, other) if program != other else None


def _label(program: str, rounds: Sequence[Round]) -> str:
    """A program as the table names it: the model only where the group has several."""
    if engine_of(program) == IREE:
        model, _, variant = name_of(program).rpartition("/")
        models = {name_of(one).rpartition("/")[0] for one in programs(rounds) if engine_of(one) == IREE}
        return f"`{variant}`" if models == {model} else f"`{model}/{variant}`"
    several = sum(engine_of(one) == engine_of(program) for one in programs(rounds))
    best = f", the fastest of {several}" if several > 1 else ""
    detail = f" ({name_of(program)}{best})" if name_of(program) != program else ""
    return f"{engine_of(program)}{detail}"


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return "-"
    decimals = 3 if ratio.centre < 10 else 1
    return f"{ratio.centre:.{decimals}f} ({ratio.low:.{decimals}f} to {ratio.high:.{decimals}f})"


def _ahead(ratio: Ratio | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio.ahead} of {ratio.generations} generations, {ratio.rounds_ahead} of {ratio.rounds} rounds"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
