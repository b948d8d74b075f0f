"""What failed, told once a cause: cases with the same message stand together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.report.page import Column, Inline, Name, Paragraph, Part, Table, Tone
from harness.text import plural

# Names that a cell has room for; more of them are listed below the table.
_MOST_IN_A_CELL = 3


@dataclass(frozen=True, kw_only=True)
class Fate:
    """What happened to one case, in a sentence that is the same for all cases with the same cause."""

    case: str
    model: str
    sentence: str
    verdict: str = ""
    figure: str = ""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Fates that are alike but for the case."""

    fates: tuple[Fate, ...]

    @property
    def cases(self) -> tuple[str, ...]:
        """Their names, each once."""
        return tuple(dict.fromkeys(fate.case for fate in self.fates))

    @property
    def who(self) -> str:
        """The case, or how many: `12 cases of magika`."""
        if len(self.cases) == 1:
            return self.cases[0]
        models = {fate.model for fate in self.fates}
        return f"{plural(len(self.cases), 'case')}{f' of {models.pop()}' if len(models) == 1 else ''}"

    @property
    def sentence(self) -> str:
        """What happened; to how many where that is several."""
        text = self.fates[0].sentence
        return f"{self.who}: {text}" if len(self.cases) > 1 else text


def causes_of(fates: Iterable[Fate]) -> list[Cause]:
    """Fates grouped by what they say, in the order in which causes first appear."""
    groups: dict[tuple[str, str, str], list[Fate]] = {}
    for fate in fates:
        groups.setdefault((fate.sentence, fate.verdict, fate.figure), []).append(fate)
    return [Cause(fates=tuple(group)) for group in groups.values()]


def cause_parts(
    causes: Sequence[Cause], *, title: str = "", why: str = "What happened", tones: Sequence[Tone] = ()
) -> list[Part]:
    """A table with a row a cause, and the names of cases that it has no room for; columns of nothing are left out."""
    columns = [
        Column("Benchmark Name", [_in_a_cell(cause.cases) for cause in causes], kind="name"),
        Column("Figure", [cause.fates[0].figure for cause in causes]),
        Column("Verdict", [cause.fates[0].verdict for cause in causes]),
        Column(why, [cause.sentence for cause in causes], kind="sentence"),
    ]
    table = Table(title=title, columns=[column for column in columns if any(column.cells)], tones=tones)
    return [table, *(Paragraph(_all_cases(cause)) for cause in causes if len(cause.cases) > _MOST_IN_A_CELL)]


def _in_a_cell(cases: tuple[str, ...]) -> tuple[str, ...]:
    return cases if len(cases) <= _MOST_IN_A_CELL else (cases[0], f"and {len(cases) - 1:,} more")


def _all_cases(cause: Cause) -> tuple[Inline, ...]:
    names = [piece for case in cause.cases for piece in (", ", Name(case))]
    return (f"The {cause.who}: ", *names[1:])
