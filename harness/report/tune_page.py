"""What `harness tune` found, as a page: the answer in a sentence, what to do with it, and why to believe it."""

import json
import math
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.records.bisection import Trial
from harness.records.tuning import Standing, Tried, TunedDispatch, Tuning
from harness.report.comparison import CHANGED, TONES, marked
from harness.report.data import Field, table_of, to_csv
from harness.report.page import Bullets, Code, Fold, Heading, Name, Page, Paragraph, Part, Sentence, Step, Steps, Tone
from harness.report.pages import View
from harness.report.units import interval_text, p_text, share
from harness.store.work_directory import SPEC_FILE, VARIANT_FILE
from harness.text import plural

_TONES: dict[Standing, Tone] = {"best": "good", "failed": "bad", "wrong": "bad", "inert": "dim", "untried": "dim"}
# On a terminal.
_MOST_RANKED = 8
# What the plugin is called that gives the compiler a spec, which has a file of its own here.
_SPEC_PLUGIN = "tuning-spec"
_DECIDED = (*CHANGED, "unchanged")


def tune_csv(found: Tuning) -> str:
    """A line a candidate: `of` is the dispatch that it configures, "" where it is one of the whole program."""
    tried = [("", candidate) for candidate in (*found.singles, *found.combinations)]
    tried += [(dispatch.name, candidate) for dispatch in found.dispatches for candidate in dispatch.tried]
    return to_csv([{"of": of, **asdict(candidate), "parts": " ".join(candidate.parts)} for of, candidate in tried])


def page(found: Tuning, view: View) -> Page:
    """A tuning with every candidate; on a terminal, with those of the whole program that are fastest."""
    everything = (*found.combinations, *found.singles)
    ranked = sorted((tried for tried in everything if tried.ratio is not None), key=_by_ratio)
    each = [*found.singles, *(tried for tried in found.combinations if tried.ratio is None)]
    last = tuple({(row.head, row.base): row for row in found.confirmations}.values())
    measured = "Measured in fresh processes, by the rule of harness compare"
    most = _MOST_RANKED if view.terminal else None
    has_raced = bool(ranked) or any(dispatch.tried for dispatch in found.dispatches)
    notes: list[Part] = [Heading("Notes"), Bullets(found.notes)] if found.notes else []
    again = Step("do it again, or go on from what is kept", shlex.join(found.command))
    return Page(
        title=f"{found.suite}: {found.model} on {found.device} from {found.start}, IREE {found.toolchain}",
        parts=(
            Paragraph(found.sentence, "strong"),
            *_variant(found, Path(view.results or found.settings.get("out", "")) / found.id),
            *table_of(_CONFIRMED, last, measured, tones=[TONES[row.verdict] for row in last]),
            *_candidates(f"Flags and plugins, beside {found.start}", ranked, most=most),
            Fold("Each change alone, and combinations that were not timed", _candidates("", each), aside=True),
            *_dispatches(found),
            *(
                Fold(
                    f"Configurations of {_number(each)}", _candidates("", sorted(each.tried, key=_by_ratio)), aside=True
                )
                for each in found.dispatches
                if each.tried
            ),
            *_budget(found),
            *notes,
            Steps([again] if found.command else []),
        ),
        notes=_trust(found, has_raced=has_raced),
    )


def _candidates(title: str, rows: Sequence[Tried], most: int | None = None) -> list[Part]:
    fields = _TRIED if most is None else _TRIED[:4]
    return table_of(fields, rows, title, tones=[_TONES.get(row.standing, "") for row in rows], most=most)


def _by_ratio(tried: Tried) -> float:
    return tried.ratio or math.inf


def beside_start(found: Tuning) -> Trial | None:
    """The last confirmation beside the start, which is the variant's where there is one; None: there is none."""
    return next((row for row in reversed(found.confirmations) if row.base == found.start_name), None)


# --- The variant, and how to use it ---


def _variant(found: Tuning, folder: Path) -> list[Part]:
    if not found.variant:
        return []
    lines: list[Sentence] = []
    lines += [("flag ", Name(flag)) for flag in found.flags]
    lines += [("flag of the runtime ", Name(flag)) for flag in found.run_flags]
    lines += [("plugin ", Name(name), _options(options)) for name, options in found.plugins if name != _SPEC_PLUGIN]
    if found.spec:
        kept = [dispatch for dispatch in found.dispatches if dispatch.kept]
        places = sum(dispatch.places for dispatch in kept)
        what = f"{plural(len(kept), 'dispatch', 'dispatches')} at {plural(places, 'place')} of the program"
        lines.append(("tuning spec ", Name((folder / SPEC_FILE).as_posix()), f": configurations of {what}"))
    file = folder / VARIANT_FILE
    if not file.is_absolute():  # as a suite's files are named
        file = Path(os.path.relpath(file, Path(found.suite).parent))
    parts: list[Part] = [
        Heading(f"The variant {found.variant}"),
        Bullets(lines),
        Paragraph("In the suite, above its first table:"),
        Code(f'variant_files = ["{file.as_posix()}"]', "sh"),
    ]
    if found.by_hand:
        parts += [Paragraph("With plain tools:"), Code("\n".join(found.by_hand), "sh")]
    return parts


def _options(options: Mapping[str, Any]) -> str:
    words = ", ".join(f"{name} = {json.dumps(value)}" for name, value in options.items())  # as TOML has most values
    return f" with {words}" if words else ""


# --- Columns ---


def _interval(row: Tried | Trial) -> str | None:
    ends = (row.low, row.high) if isinstance(row, Tried) else (row.ci_low, row.ci_high)
    return None if row.ratio is None else interval_text(row.ratio, *ends)


_CONFIRMED: tuple[Field[Trial], ...] = (
    Field(title="measured", kind="name", value=lambda row: row.head),
    Field(title="beside", kind="text", value=lambda row: row.base),
    Field(title="finding", kind="text", value=lambda row: marked(row.verdict)),
    Field(title="ratio", kind="text", value=_interval),
    Field(title="p", kind="text", value=lambda row: p_text(row.p)),
    Field(title="generations", value=lambda row: row.generations or None),
    Field(title="before", value=lambda row: row.base_value, unit="ns", rank=1),
    Field(title="after", value=lambda row: row.head_value, unit="ns", rank=1),
    Field(title="why", kind="sentence", value=lambda row: "" if row.verdict in _DECIDED else row.reason),
)
_TRIED: tuple[Field[Tried], ...] = (
    Field(title="change", kind="name", value=lambda tried: tried.name),
    Field(title="came to", kind="text", value=lambda tried: tried.standing, rank=1),
    Field(title="ratio", kind="text", value=_interval),
    Field(title="generations", value=lambda tried: tried.generations or None, rank=1),
    # Its parts, where they say more than its name.
    Field(
        title="made of",
        kind="sentence",
        value=lambda tried: "" if tried.parts == (tried.name,) else ", ".join(tried.parts),
    ),
    Field(title="what it is for", kind="sentence", value=lambda tried: tried.purpose),
    Field(title="why", kind="sentence", value=lambda tried: tried.reason),
)


# --- Dispatches, and what it took ---


def _dispatches(found: Tuning) -> list[Part]:
    fields: tuple[Field[TunedDispatch], ...] = (
        Field(title="dispatch", kind="name", value=_number),
        Field(title="what it does", kind="text", value=lambda one: one.operation),
        Field(title="share", value=lambda one: one.share, unit="share"),
        Field(title="places", value=lambda one: one.places, rank=2),
        Field(title="tried", value=lambda one: len(one.tried) or None, rank=2),
        Field(title="alone", kind="text", value=lambda one: interval_text(one.alone, None, None)),
        Field(title="in the program", kind="text", value=lambda one: interval_text(one.whole, None, None)),
        Field(title="kept", kind="text", value=lambda one: "yes" if one.kept else "no"),
        Field(title="the compiler's own configuration", kind="sentence", value=lambda one: one.own),
        Field(title="the winner's configuration", kind="sentence", value=lambda one: one.chosen),
        Field(title="remark", kind="sentence", value=lambda dispatch: dispatch.reason),
    )
    ratios = "Ratios: the winner's time divided by that of the compiler's own configuration."
    title = f"Dispatches: {found.covered * 100:.0f} % of a call's time before"
    tones: list[Tone] = ["good" if dispatch.kept else "" for dispatch in found.dispatches]
    return table_of(fields, found.dispatches, title, tones=tones, after=[ratios])


def _number(dispatch: TunedDispatch) -> str:
    return dispatch.name.removesuffix(f"_{dispatch.operation}")


def _budget(found: Tuning) -> list[Part]:
    stages = sorted(found.stages.items(), key=lambda stage: -stage[1])
    words = ", ".join(f"{seconds:.0f} s for {name}" for name, seconds in stages if seconds)
    lines = [f"{found.spent_s:.0f} s were spent of a budget of {found.budget_s:.0f} s: {words or 'nothing was tried'}."]
    if found.candidates_a_minute:
        lines.append(f"{found.candidates_a_minute:.0f} configurations of dispatches a minute were compiled and raced.")
    return [Heading("Where the budget went"), Bullets(lines)]


def _trust(found: Tuning, *, has_raced: bool) -> list[str]:
    lines = [f"Tuning {found.id} of {found.created[:10]}, on {found.machine}."] if found.machine else []
    if has_raced and found.race_error:
        lines.append(
            f"The chance that a race dropped its best candidate is at most {share(found.race_error)} in each race. "
            "Ratios of candidates are those of their races, where the winner's is probably optimistic; what counts is "
            "measured again in fresh processes by the rule of harness compare."
        )
    return lines
