"""Right programs beside the reference, with all flag sets and targets."""

from dataclasses import dataclass, field

from benchmarks.outputs.judging import FLAG_SETS, TARGETS, judged, linalg_of, reference
from benchmarks.outputs.recording import Keeper
from benchmarks.outputs.right_programs import all_right
from harness.verify.interpreter import TooLongError
from harness.verify.rounding import UnsupportedError


@dataclass(frozen=True, kw_only=True)
class Row:
    """A right program's output with one flag set, for one target.

    Attributes:
        beyond: Elements that were refused.
        spreads: The largest error, in spreads.
    """

    family: str
    seed: int
    target: str
    flags: tuple[str, ...]
    beyond: int
    elements: int
    spreads: float
    at: str

    @property
    def name(self) -> str:
        """What a report calls it."""
        return f"{self.family} {self.seed}, {' '.join(self.flags) or 'no flags'}, {self.target}"


@dataclass(frozen=True, kw_only=True)
class Group:
    """What came of one family."""

    rows: list[Row] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def judge_family(name: str, keeper: Keeper) -> Group:
    """All programs of one family."""
    programs = [program for program in all_right() if program.family == name]
    functions, needed = [program.function for program in programs], programs[0].flags
    group = Group()
    text, right = linalg_of("\n".join(function.text() for function in functions), needed), {}
    for function in functions:
        try:
            right[function.name] = reference(text, function)
        except (UnsupportedError, TooLongError) as error:
            group.failed.append(f"`{function.name}` is not evaluated: {error}")
    for target in TARGETS:
        for flags in FLAG_SETS:
            outputs, failed = keeper.outputs(functions, target, (*needed, *flags))
            group.failed.extend(failed)
            for program in programs:
                called = program.function.name
                if called in outputs and called in right:
                    one = judged(right[called], outputs[called])
                    group.rows.append(
                        Row(family=program.family, seed=program.seed, target=target, flags=flags, beyond=one.beyond,
                            elements=one.elements, spreads=one.spreads, at=one.at)
                    )  # fmt: skip
    return group
