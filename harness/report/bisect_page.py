"""What a bisect found, as a page: the answer in a sentence, the steps or causes, and all that was tried."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.errors import ExitCode
from harness.metrics import metric_title
from harness.records.bisection import Bisection, FoundCause, FoundStep, Trial
from harness.report.comparison import CHANGED, TONES, marked
from harness.report.data import Field, table_of, to_csv
from harness.report.page import Bullets, Column, Page, Paragraph, Part, Step, Steps, Table, Warnings
from harness.report.pages import View
from harness.report.units import COMMIT_DIGITS, interval_text, share, unit_of
from harness.text import plural

_BELONGS = {"base": "the first", "head": "the last", "between": "neither", "unknown": "not known", "": ""}


def bisect_csv(found: Bisection) -> str:
    """A line a measurement."""
    return to_csv([asdict(trial) for trial in found.trials])


def bisect_exit_code(found: Bisection) -> ExitCode:
    """0 where the step that was asked for is known; else 4."""
    return ExitCode.OK if found.is_known else ExitCode.INCONCLUSIVE


def page(found: Bisection, _: View) -> Page:
    """A bisection for a terminal, or as Markdown."""
    lost = [position for position in found.positions if position.unusable]
    columns = [
        Column("position", [position.name for position in lost], kind="name"),
        Column("why", [position.unusable for position in lost], kind="sentence"),
    ]
    ends = f"beside variant {found.ends[0]}"
    if found.over != "flags":
        of = "IREE" if found.over == "releases" else "commit"
        ends = f"from {of} {found.ends[0]} to {', '.join(found.ends[1:])}"
    tones = [TONES[trial.verdict] for trial in found.trials]
    return Page(
        title=f"{found.suite}: {_figure(found)} of {found.case} {ends}",
        parts=[
            Paragraph(answer(found), "strong"),
            Warnings([*found.notes, *_contradicted(found)]),
            *(_causes_tables(found) if found.over == "flags" else _steps_table(found)),
            Bullets([f"Not known between {gap.first} and {gap.last}: {gap.reason}" for gap in found.open]),
            *table_of(_trial_fields(found), found.trials, "All that was measured", tones=tones),
            *([Table(title="What cannot be measured", columns=columns)] if lost else []),
            Bullets(_commits(found)),
            Steps(_next_steps(found)),
        ],
        notes=_trust(found),
    )


# --- The answer ---


def answer(found: Bisection) -> str:
    """The answer in a sentence or several, fit to be pasted."""
    figure, is_open = f"the {_figure(found)} of {found.case}", bool(found.open) or not found.finished
    why = found.open[0].reason if found.open else "not all was measured"
    if found.causes:
        made = f"{'; '.join(_made(cause, found) for cause in found.causes)}."
        return " ".join(filter(None, (made, *(cause.explanation for cause in found.causes))))
    if found.steps:
        return " ".join(" ".join(filter(None, (_began(step, found), step.explanation))) for step in found.steps)
    ends = [_beside(trial, found.unit) for trial in found.trials if {trial.base, trial.head} <= set(found.ends)]
    if found.over == "flags":
        why = why if is_open else "".join(_beside(trial, found.unit) for trial in found.trials[:1])
        return f"No part of {found.ends[1]} is found to change the {_figure(found)} of {found.ends[0]}: {why}."
    if is_open:
        return f"It is not known when {figure} changed: {why}."
    more = f" by more than {share(found.floor)}" if found.floor else ""
    return f"No change of {figure}{more}: {'; '.join(ends)}."


def _began(step: FoundStep, found: Bisection) -> str:
    """The sentence of a step: `Since 3.7.0: latency 1.420 [1.401, 1.440] times that of 3.6.0.`."""
    words = f"{_figure(found)} {times_that_of(step.before, step.size, found.unit)}"
    names = [commit.name for commit in found.commits]
    since = found.commits[names.index(step.before) + 1 : names.index(step.after) + 1] if names else ()
    after = f"{step.after} ({since[-1].subject})" if since and since[-1].subject else step.after
    why = "cannot be measured" if found.finished else "was not measured yet"
    between = [f"{', '.join(step.passed_over)}, which {why}"] if step.passed_over else []
    if unbuilt := sum(commit.unbuilt for commit in since):
        between.append(f"{plural(unbuilt, 'commit')} between them of which there is no build")
    if not between:
        return f"Since {after}: {words}."
    return f"Since {after} at the latest: {words}; it may have begun with {', or with '.join(between)}."


def _made(cause: FoundCause, found: Bisection) -> str:
    names = " and ".join(found.parts[number - 1] for number in cause.parts)
    together = " together" if len(cause.parts) > 1 else ""
    beside = f" with part {_numbers(cause.beside)}" if cause.beside else ""
    inside = f" (of what it sets: {' or '.join(cause.inside)})" if cause.inside else ""
    words = times_that_of(f"{found.ends[0]}{beside}", cause.size, found.unit)
    return f"{names}{inside}{together}: {_figure(found)} {words}"


def times_that_of(base: str, trial: Trial, unit: str) -> str:
    """`1.420 [1.401, 1.440] times that of 3.6.0`; of counts `14, and 10 with 3.6.0`."""
    if trial.ratio is not None and not trial.exact:
        return f"{_ratio(trial)} times that of {base}"
    head, before = _figures(trial, unit)
    return f"{head}, and {before} with {base}"


def _figures(trial: Trial, unit: str) -> tuple[str, str]:
    column = unit_of(unit, [trial.base_value, trial.head_value])
    head, base = (f"{column.text(value)} {column.name}".strip() for value in (trial.head_value, trial.base_value))
    return head, base


def _beside(trial: Trial, unit: str) -> str:
    """`3.7.0 has 1.001 [0.998, 1.004] times that of 3.6.0`; of what was not measured, why it need not be."""
    if trial.exact:
        head, base = _figures(trial, unit)
        return f"{trial.head} has {head}, {trial.base} has {base}"
    if trial.generations:
        return f"{trial.head} has {times_that_of(trial.base, trial, unit)}"
    return f"{trial.head} beside {trial.base}: {trial.reason}"


def _figure(found: Bisection) -> str:
    return metric_title(found.metric).lower()


def _numbers(numbers: Sequence[int]) -> str:
    return "+".join(map(str, numbers))


def _contradicted(found: Bisection) -> list[str]:
    good, bad, *fixed = found.ends
    better = ((good, bad, "improved"), (bad, good, "regressed"))
    same = [{bad, end} for end in fixed]
    lines = []
    for trial in found.trials:
        if (trial.base, trial.head, trial.verdict) in better:
            lines.append(f"{bad} was given as bad, and is the better one: {_beside(trial, found.unit)}")
        elif {trial.base, trial.head} in same and trial.verdict in ("unchanged", "identical"):
            lines.append(f"{fixed[0]} was given as fixed, and does not differ from {bad}: {_beside(trial, found.unit)}")
    return lines[:1]


# --- Tables ---


def _size_fields(found: Bisection) -> tuple[Field[Any], ...]:
    return (
        Field(title="change", kind="text", value=lambda row: _marked(row.size)),
        Field(title="ratio", kind="text", value=lambda row: _ratio(row.size)),
        Field(title="before", value=lambda row: row.size.base_value, unit=found.unit),
        Field(title="after", value=lambda row: row.size.head_value, unit=found.unit),
    )


def _steps_table(found: Bisection) -> list[Part]:
    subjects = {commit.name: commit.subject for commit in found.commits}
    fields: tuple[Field[FoundStep], ...] = (
        Field(title="since", kind="name", value=lambda step: step.after),
        Field(title="subject", kind="text", value=lambda step: subjects.get(step.after, "")),
        Field(title="last before it", kind="name", value=lambda step: step.before),
        Field(title="its subject", kind="text", value=lambda step: subjects.get(step.before, ""), rank=1),
        *_size_fields(found),
        Field(title="passed over", kind="text", value=lambda step: ", ".join(step.passed_over), rank=1),
        Field(title="what differs", kind="sentence", value=lambda step: step.explanation, rank=1),
    )
    return table_of(fields, found.steps, "Steps", tones=[TONES[step.size.verdict] for step in found.steps])


def _causes_tables(found: Bisection) -> list[Part]:
    numbers = [f"{number}" for number in range(1, len(found.parts) + 1)]
    parts = [Column("number", numbers), Column("part", list(found.parts), kind="name")]
    fields: tuple[Field[FoundCause], ...] = (
        Field(title="parts", kind="name", value=lambda cause: _numbers(cause.parts)),
        Field(title="beside", kind="text", value=lambda cause: _numbers(cause.beside)),
        *_size_fields(found),
        Field(
            title="each alone",
            kind="sentence",
            value=lambda cause: tuple(f"{trial.head}: {_ratio(trial)} ({trial.verdict})" for trial in cause.alone),
        ),
        Field(title="what differs", kind="sentence", value=lambda cause: cause.explanation, rank=1),
        Field(
            title="remark",
            kind="sentence",
            value=lambda cause: "a smaller set could not be told, so there may be one" if cause.untold else "",
        ),
    )
    tones = [TONES[cause.size.verdict] for cause in found.causes]
    return [
        Table(title=f"Parts of {found.ends[1]}", columns=parts),
        *table_of(fields, found.causes, "What makes the difference", tones=tones),
    ]


def _trial_fields(found: Bisection) -> tuple[Field[Trial], ...]:
    return (
        Field(title="measured", kind="name", value=lambda trial: trial.head),
        Field(title="beside", kind="text", value=lambda trial: trial.base),
        Field(title="edge", kind="text", value=lambda trial: share(float(f"{trial.floor:.3g}")), rank=2),
        Field(title="finding", kind="text", value=_marked),
        Field(title="ratio", kind="text", value=_ratio),
        Field(title="before", value=lambda trial: trial.base_value, unit=found.unit, rank=1),
        Field(title="after", value=lambda trial: trial.head_value, unit=found.unit, rank=1),
        Field(title="belongs to", kind="text", value=lambda trial: _BELONGS[trial.belongs]),
        Field(title="generations", value=lambda trial: trial.generations or None, rank=2),
        Field(title="why", kind="sentence", value=_why, rank=1),
    )


def _why(trial: Trial) -> str:
    return "" if trial.placed or trial.verdict in (*CHANGED, "unchanged") else trial.reason


def _marked(trial: Trial) -> str:
    return "placed" if trial.placed else marked(trial.verdict)


def _ratio(trial: Trial) -> str:
    return interval_text(trial.ratio, trial.ci_low, trial.ci_high)


# --- What follows from it ---


def _commits(found: Bisection) -> list[str]:
    revisions = {position.name: position.revision[:COMMIT_DIGITS] for position in found.positions}
    repository = found.commits[0].repository if found.commits else "iree-org/iree"
    return [
        f"The commits of IREE from {step.before} to {step.after}: https://github.com/{repository}/compare/{first}...{last}"
        for step in found.steps
        if repository and (first := revisions.get(step.before)) and (last := revisions.get(step.after))
    ]


def _next_steps(found: Bisection) -> list[Step]:
    folder = Path(found.settings.get("results", ""))
    steps = []
    again = shlex.join(["harness", "bisect", "--resume", (folder / found.id).as_posix()])
    if not found.finished or any(trial.is_open for trial in found.trials):
        longer = "" if not found.finished else f" --row-budget {2 * found.settings.get('row_budget', 60.0):g}"
        steps.append(Step("go on with more time", f"{again}{longer}"))
    if repo := found.settings.get("repo"):
        for step in found.steps:
            command = shlex.join(["git", "-C", repo, "log", "--oneline", f"{step.before}..{step.after}"])
            steps.append(Step(f"see the commits from {step.before} to {step.after}", command))
    explained = [(f"from {step.before} to {step.after}", step.explanation_id) for step in found.steps]
    explained += [(f"with part {_numbers(cause.parts)}", cause.explanation_id) for cause in found.causes]
    for where, name in explained:
        if name:
            command = shlex.join(["harness", "report", (folder / name).as_posix()])
            steps.append(Step(f"see which dispatches differ {where}, and how", command))
    return steps


def _trust(found: Bisection) -> list[str]:
    measured = sum(bool(trial.generations) and not trial.placed for trial in found.trials)
    lines = [f"Bisect {found.id}, on {found.machine}."]
    if found.error:
        which = "the one measurement" if measured == 1 else f"any of the {measured} measurements"
        at_most = math.ceil(found.error * 1000) / 1000  # it is a bound
        lines.append(
            f"The chance that {which} is wrong is at most {share(at_most)}, by the figures of the rule; "
            "all intervals hold together at that confidence."
        )
    elif any(trial.generations or (trial.exact and trial.head_value is not None) for trial in found.trials):
        lines.append("The figures are counted, so equal code gives equal ones.")
    return lines
