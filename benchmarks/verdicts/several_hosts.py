"""Rows that several hosts of one class measure at the same time: how often verdicts err, what they find, how soon.

The hosts are simulated over recorded noise: each takes a stream of equal modules from a place of its own, is up to
twice as slow and from half to twice as noisy, and has a ratio of its own where a table says so. The engine is that of
`harness compare`. Seeded, so that everybody gets the same tables from one recording.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.documents import replace_between
from benchmarks.verdicts.stream_names import is_quiet, is_waiting, slowdown_of
from benchmarks.verdicts.trials import BUDGET_S, IMPROVED, REGRESSED, ROW_CAP_S, Streams, as_sampled
from benchmarks.verdicts.words import between, percent
from harness.compare.engine import Generation, Outcome, Task, by_host, decide
from harness.report.markdown import blocks, table
from harness.stats.hosts import locate_on_hosts
from harness.stats.intervals import rate_bounds
from harness.stats.pairing import FloatArray
from harness.stats.rule import PAIR, Rule

BEGIN, END = "<!-- made by `python -m benchmarks.verdicts --hosts`: begin -->", "<!-- --hosts: end -->"

NUMBERS = (1, 2, 4, 8)
# Of each stream, in each line of a table; and so many times as many of equal modules on hosts that are not off.
TRIALS = 50
MORE_EQUAL = 3
# A shorter stream says little of how generations vary.
LEAST_GENERATIONS = 150
# The slowest host takes so many times as long as the fastest; noise is that of the recording times 1/2 to 2.
SLOWEST = 2.0
NOISE = (0.5, 2.0)
# Head's changes, with the floor that is meant to let each be seen.
CHANGES = ((0.01, 0.005), (0.02, 0.01), (0.05, 0.01))
OFFSETS = (0.0025, 0.005, 0.01, 0.02)


@dataclass(frozen=True, kw_only=True)
class Host:
    """One simulated host.

    Attributes:
        slowness: Times the seconds of the recording.
        noise: Times its log ratios.
        log_ratio: Of the two modules on this host.
    """

    slowness: float
    noise: float
    log_ratio: float

    def measure(self, recorded: Generation, name: str) -> Generation:
        """What this host would have given in place of a recorded generation of equal modules."""
        log = recorded.log_ratio
        return replace(
            recorded,
            log_ratio=None if log is None else self.noise * log + self.log_ratio,
            seconds=self.slowness * recorded.seconds,
            host=name,
        )


# How the log ratios of so many hosts lie.
Ratios = Callable[[np.random.Generator, int], FloatArray]


def alike(change: float) -> Ratios:
    """The same on all of them."""
    return lambda _, number: np.full(number, math.log1p(change))


def scattered(deviation: float) -> Ratios:
    """Equal modules that differ on each host, by chance, with this standard deviation."""
    return lambda generator, number: generator.normal(0, deviation, number)


def on_one(change: float) -> Ratios:
    """Changed on one host alone."""
    return lambda _, number: np.array([math.log1p(change)] + [0.0] * (number - 1))


def from_to(low: float, high: float) -> Ratios:
    """Changed on every host, more or less."""
    return lambda generator, number: np.log1p(generator.uniform(low, high, number))


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One row.

    Attributes:
        hosts: That measured it.
        seconds: Wall time; a batch takes as long as its slowest host.
    """

    outcome: Outcome
    hosts: Sequence[Host]
    seconds: float

    @property
    def logs(self) -> FloatArray:
        """The true log ratio on each host."""
        return np.array([host.log_ratio for host in self.hosts])


def play_on(stream: Sequence[Generation], hosts: Sequence[Host], starts: Sequence[int], *, floor: float) -> Trial:
    """Decide one row of which each host measures its share; a stream that ends begins again.

    Args:
        starts: Where each host begins in the stream.
    """
    names = tuple(f"host {number}" for number in range(1, len(hosts) + 1))

    def sample(number: int) -> Generation:
        place = number // PAIR % len(hosts)
        at = starts[place] + number // PAIR // len(hosts) * PAIR + number % PAIR
        return hosts[place].measure(stream[at % len(stream)], names[place])

    def batch(numbers: Sequence[int]) -> Iterator[tuple[int, Generation]]:
        yield from ((number, sample(number)) for own in by_host(numbers, names).values() for number in own)

    task = Task(name="row", sample=sample, rule=Rule(floor=floor), budget_s=BUDGET_S, cap_s=ROW_CAP_S)
    if len(hosts) > 1:
        task = replace(task, hosts=len(hosts), batch=batch)
    (outcome,) = decide([task], lambda _name, _generation: None)
    return Trial(outcome=outcome, hosts=hosts, seconds=_wall_s(outcome.generations, len(hosts)))


def _wall_s(generations: Sequence[Generation], hosts: int) -> float:
    seconds = [generation.seconds for generation in generations]
    pairs = [sum(seconds[start : start + PAIR]) for start in range(0, len(seconds), PAIR)]
    return sum(max(pairs[start : start + hosts]) for start in range(0, len(pairs), hosts))


def play_all(
    streams: Mapping[str, Sequence[Generation]], number: int, ratios: Ratios, *, floor: float = 0.01, trials: int
) -> list[Trial]:
    """So many trials of each stream, on so many hosts; the same hosts whatever their ratios."""
    played = []
    for place, stream in enumerate(streams.values()):
        generator = np.random.default_rng([20261123, place, number])
        for _ in range(trials):
            slowness = SLOWEST ** generator.random(number)
            noise = NOISE[0] * (NOISE[1] / NOISE[0]) ** generator.random(number)
            starts = generator.integers(0, len(stream) // PAIR, number) * PAIR
            logs = ratios(generator, number)
            hosts = [
                Host(slowness=float(each[0]), noise=float(each[1]), log_ratio=float(each[2]))
                for each in zip(slowness, noise, logs, strict=True)
            ]
            played.append(play_on(stream, hosts, starts.tolist(), floor=floor))
    return played


def equal_streams(streams: Streams) -> dict[str, tuple[Generation, ...]]:
    """Quiet streams of equal modules that are long enough, as the harness's sampler gave them."""
    return {
        name: as_sampled(stream)
        for name, stream in streams.items()
        if is_quiet(name) and not is_waiting(name) and not slowdown_of(name)[1] and len(stream) >= LEAST_GENERATIONS
    }


def several_hosts(streams: Streams, *, trials: int = TRIALS) -> str:
    """The tables, as Markdown."""
    equal = equal_streams(streams)
    play = partial(play_all, equal, trials=trials)
    rows = trials * len(equal)
    return blocks(
        f"Each line has {rows:,} rows: {trials} of each of the streams {', '.join(equal)}; in the first table "
        f"{MORE_EQUAL * rows:,} of equal modules. One row a comparison, budget {BUDGET_S:g} s, confirmation included "
        f"in generations and seconds. Hosts are up to {SLOWEST:g} times as slow as the recording, and {NOISE[0]:g} to "
        f"{NOISE[1]:g} times as noisy. They measure at the same time, and a batch takes as long as its slowest host.",
        "Hosts on which the ratio is the same:",
        _alike(play, MORE_EQUAL * trials),
        "Equal modules whose ratio is off on each host by chance, normally, with the standard deviation that is given; "
        "floor 1 %. `changed`: called regressed or improved, confirmation included; `wrongly unchanged`: although a "
        "host is off by more than the floor; `1 outside`: 95 % intervals that do not hold a ratio of 1, with hosts as "
        "blocks, and as if all generations were of one host:",
        _scattered(play),
        "Heads that are slower on some hosts and not on others, or not equally slow, floor 1 %:",
        _uneven(play),
    )


def _alike(play: Callable[..., list[Trial]], of_equal: int) -> str:
    lines = []
    for number in NUMBERS:
        equal = play(number, alike(0.0), trials=of_equal)
        slower = [play(number, alike(change), floor=floor) for change, floor in CHANGES]
        alarms = _count(equal, REGRESSED, IMPROVED)
        lines.append(
            [
                f"{number}",
                f"{alarms} ({between(rate_bounds(alarms, len(equal)))})",
                _share(equal, "unchanged"),
                _typical(equal),
                *(cell for trials in slower for cell in (_share(trials, REGRESSED), _typical(trials))),
            ]
        )
    heads = ["hosts", "equal modules called changed", "called unchanged", "generations / s"]
    for change, floor in CHANGES:
        heads += [f"+{percent(change)} found, floor {percent(floor, 1)}", "generations / s"]
    return table(heads, lines, numbers=[True] * len(heads))


def _scattered(play: Callable[..., list[Trial]]) -> str:
    lines = []
    edge = math.log1p(Rule().floor)
    for deviation in OFFSETS:
        for number in NUMBERS:
            trials = play(number, scattered(deviation))
            wrong = sum(
                trial.outcome.decision == "unchanged" and bool(np.abs(trial.logs).max() > edge) for trial in trials
            )
            lines.append(
                [
                    percent(deviation, 2),
                    f"{number}",
                    _share(trials, REGRESSED, IMPROVED),
                    _share(trials, "unchanged"),
                    percent(wrong / len(trials), 1),
                    percent(sum(trial.outcome.hosts_disagree for trial in trials) / len(trials), 1),
                    *(percent(_outside(trials, blind=blind), 1) for blind in (False, True)),
                ]
            )
    heads = ["off by", "hosts", "changed", "unchanged", "wrongly unchanged", "hosts disagree"]
    heads += ["1 outside: blocks", "1 outside: as one"]
    return table(heads, lines, numbers=[True] * len(heads))


def _uneven(play: Callable[..., list[Trial]]) -> str:
    cases = {
        "+5 % on one host, 0 on the rest": on_one(0.05),
        "+2 % on one host, 0 on the rest": on_one(0.02),
        "+2 % to +5 % on each": from_to(0.02, 0.05),
        "+5 % to +20 % on each": from_to(0.05, 0.20),
    }
    lines = []
    for what, ratios in cases.items():
        for number in NUMBERS[1:]:
            trials = play(number, ratios)
            apart = sum(trial.outcome.hosts_disagree for trial in trials)
            said = [_share(trials, word) for word in (REGRESSED, "unchanged")]
            lines.append([what, f"{number}", *said, percent(apart / len(trials), 1), _typical(trials)])
    heads = ["head", "hosts", "regressed", "unchanged", "hosts disagree", "generations / s"]
    return table(heads, lines, numbers=[False, *[True] * 5])


def _outside(trials: Sequence[Trial], *, blind: bool) -> float:
    missed = 0
    for trial in trials:
        used = [generation for generation in trial.outcome.generations if generation.log_ratio is not None]
        logs = np.array([generation.log_ratio for generation in used])
        look = locate_on_hosts(logs, ["" if blind else each.host for each in used], confidence=0.95)
        missed += not look.low <= 0 <= look.high
    return missed / len(trials)


def _count(trials: Sequence[Trial], *decisions: str) -> int:
    return sum(trial.outcome.decision in decisions for trial in trials)


def _share(trials: Sequence[Trial], *decisions: str) -> str:
    return percent(_count(trials, *decisions) / len(trials), 1)


def _typical(trials: Sequence[Trial]) -> str:
    generations = np.mean([len(trial.outcome.generations) for trial in trials])
    return f"{generations:.0f} / {np.mean([trial.seconds for trial in trials]):.1f}"


def write_several_hosts(document: Path, streams: Streams) -> None:
    """Replace what stands between the document's marks."""
    replace_between(document, BEGIN, END, several_hosts(streams))
