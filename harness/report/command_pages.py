"""What commands beside those that measure print: a table, and sentences that sum up or say why."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.compare.selfcheck import CaseCheck, Selfcheck
from harness.errors import ExitCode, SuiteError, UsageError
from harness.models.builder import BUILDERS, Builder
from harness.peers.peer import PEERS, AppliedPeer, Peer
from harness.plugins import PLUGINS, Plugin
from harness.plugins.options import Option, options_of
from harness.plugins.registry import Registry
from harness.report.comparison import capital, machine_line
from harness.report.data import Field, records, table_of, to_json
from harness.report.page import Bullets, Code, Heading, Page, Paragraph, Part, Tone
from harness.report.run_report import Summary
from harness.report.units import NOTHING, with_unit
from harness.store.merging import WRONG, Finding, Outcome
from harness.store.tables import NOTHING_YET
from harness.text import did_you_mean, plural

# --- Results folders ---

# Above this many rows, those that nobody has to look at are only counted.
_MANY = 40
_Record = Mapping[str, Any]

_MERGED: tuple[Field[Outcome], ...] = (
    Field(title="folder", kind="text", value=lambda row: row.name),
    Field(title="from", kind="text", value=lambda row: row.source),
    Field(title="outcome", kind="text", value=lambda row: row.fate),
)
_VERIFIED: tuple[Field[Finding], ...] = (
    Field(title="folder", kind="text", value=lambda row: row.name),
    Field(title="what", kind="text", value=lambda row: row.kind or NOTHING),
    Field(title="state", kind="text", value=lambda row: row.state),
)
_RUNS: tuple[Field[_Record], ...] = (
    Field(title="run", kind="name", value=lambda run: run["run"]),
    Field(title="suite", kind="text", value=lambda run: run["suite"], rank=3),
    Field(title="began", kind="text", value=lambda run: run["started"][:16].replace("T", " "), rank=1),
    Field(title="toolchain", kind="text", value=lambda run: run["toolchain"], rank=2),
    Field(title="cases", value=lambda run: run["cases"]),
    Field(title="failed", value=lambda run: run["failed"] + run["missing"]),
    Field(
        title="tags",
        kind="text",
        value=lambda run: ", ".join([*run["tags"], *([] if run["finished"] else ["(unfinished)"])]),
    ),
)
_COMPARISONS: tuple[Field[_Record], ...] = (
    Field(title="comparison", kind="name", value=lambda row: row["comparison"]),
    Field(title="of", kind="text", value=lambda row: row["compares"]),
    Field(title="rows", value=lambda row: row["rows"], rank=1),
    Field(title="regressed", value=lambda row: row["regressed"]),
    Field(title="improved", value=lambda row: row["improved"]),
    Field(title="outputs differ", value=lambda row: row["outputs_differ"] or None),
)
_EXPLANATIONS: tuple[Field[_Record], ...] = (
    Field(title="explanation", kind="name", value=lambda row: row["explanation"]),
    Field(title="case", kind="name", value=lambda row: row["case"]),
    Field(title="of", kind="text", value=lambda row: row["compares"]),
    Field(title="latency", kind="text", value=lambda row: row["verdict"]),
    Field(title="ratio", unit="ratio", value=lambda row: row["ratio"], rank=1),
)


def merged_page(outcomes: Sequence[Outcome]) -> Page:
    """A row for each folder that was merged, or was not."""
    states = [row.fate for row in outcomes]
    return _folders_page(_MERGED, outcomes, states, ("refused", "left out"), "nothing to merge")


def verified_page(findings: Sequence[Finding]) -> Page:
    """A row for each folder."""
    return _folders_page(_VERIFIED, findings, [row.state for row in findings], tuple(WRONG), "nothing here")


def _folders_page(
    fields: Sequence[Field[Any]], rows: Sequence[Any], states: Sequence[str], wrong: Sequence[str], nothing: str
) -> Page:
    """Of many folders those alone that somebody has to look at, and how many there are of each state."""
    found = zip(rows, states, strict=True)  # folders of two places may have one name
    shown = [(row, state in wrong) for row, state in found if len(rows) <= _MANY or state in wrong]
    tones: list[Tone] = ["bad" if is_wrong else "" for _, is_wrong in shown]
    reasons = [Paragraph(f"{row.name}: {row.why}") for row, _ in shown if row.why]
    counts = Paragraph(capital(_counts(states) or nothing))
    return Page(parts=(*table_of(fields, [row for row, _ in shown], "", tones=tones), *reasons, counts))


def _counts(words: Iterable[str]) -> str:
    """`12 copied, 1 refused`."""
    return ", ".join(f"{count:,} {word}" for word, count in Counter(words).items())


def listed_page(runs: Sequence[_Record], comparisons: Sequence[_Record], explanations: Sequence[_Record] = ()) -> Page:
    """A row for each run with its tags, and one for each comparison and explanation with what it compares."""
    tables = (
        (_RUNS, runs, "run"),
        (_COMPARISONS, comparisons, "comparison"),
        (_EXPLANATIONS, explanations, "explanation"),
    )
    parts = [part for fields, rows, _ in tables for part in table_of(fields, rows, "")]
    tagged = _counts(tag for run in runs for tag in run["tags"])
    numbers = ", ".join(plural(len(rows), noun) for _, rows, noun in tables if rows)
    summary = f"{numbers}.{f' Tags: {tagged}.' if tagged else ''}"
    return Page(parts=(*parts, Paragraph(summary if numbers else NOTHING_YET)))


# --- A list of suites ---


@dataclass(frozen=True, kw_only=True)
class SuiteOutcome:
    """What became of one suite of a list."""

    suite: Path
    status: ExitCode  # The exit status that it would have alone
    # Its run's directory; None: it was not run, and `note` says why in a sentence that names it
    run: Path | None = None
    summary: Summary | None = None  # Of its run
    note: str = ""


def _count(name: str, title: str, *, if_any: bool = False) -> Field[SuiteOutcome]:

    def value(outcome: SuiteOutcome) -> int | None:
        count: int | None = getattr(outcome.summary, name, None)
        return count or None if if_any else count

    return Field(title=title, value=value)


_SUITES: tuple[Field[SuiteOutcome], ...] = (
    Field(name="suite", title="suite", kind="text", value=lambda outcome: outcome.suite.as_posix()),
    _count("measured", "measured"),
    _count("failed", "failed"),
    _count("skipped", "skipped"),
    _count("same", "same module", if_any=True),
    _count("missing", "missing", if_any=True),
    _count("expected_failures", "failed as expected", if_any=True),
    _count("works_again", "works again", if_any=True),
    _count("over_limit", "over a limit", if_any=True),
    Field(name="exit_status", title="exit status", value=lambda outcome: int(outcome.status)),
    Field(name="run", title="run", kind="text", value=lambda outcome: outcome.run.as_posix() if outcome.run else None),
    Field(name="summary", value=lambda outcome: asdict(outcome.summary) if outcome.summary else None),
    Field(name="note", value=lambda outcome: outcome.note or None),
)


def outcome_records(outcomes: Sequence[SuiteOutcome]) -> list[dict[str, Any]]:
    """For other programs."""
    return records(_SUITES, outcomes)


def outcomes_page(outcomes: Sequence[SuiteOutcome]) -> Page:
    """A table, and under it why suites were not run."""
    tones: list[Tone] = ["" if outcome.status == ExitCode.OK else "bad" for outcome in outcomes]
    notes = [outcome.note for outcome in outcomes if outcome.note]
    return Page(parts=(*table_of(_SUITES, outcomes, "Suites", tones=tones), Bullets(notes)))


# --- A selfcheck ---


def _share(value: float | None) -> str | None:
    return None if value is None else f"{value * 100:.2f} %"


_CHECKED: tuple[Field[CaseCheck], ...] = (
    Field(title="case", kind="name", value=lambda case: case.case),
    Field(title="latency", kind="text", value=lambda case: case.latency_ns and with_unit(case.latency_ns)),
    Field(title="rows", value=lambda case: case.rows),
    Field(title="flagged", value=lambda case: case.flagged),
    Field(title="inconclusive", value=lambda case: case.inconclusive),
    Field(title="failed", value=lambda case: case.failed),
    Field(title="spread", kind="text", value=lambda case: _share(case.spread)),
    Field(title="detects", kind="text", value=lambda case: _share(case.detects)),
    Field(title="s a row", kind="text", value=lambda case: f"{case.seconds:.1f}"),
)


def selfcheck_page(check: Selfcheck) -> Page:
    """A check of this machine."""
    legend = [
        f"Every module was compared with itself, {check.budget_s:g} s a row at most, floor {check.floor * 100:g} %; a "
        "flagged row is a false alarm.",
        "spread: of the log ratio between generations; detects: the smallest slowdown that nine of ten rows find in "
        "their time.",
    ]
    return Page(
        verdict=machine_line(check.facts), parts=(*table_of(_CHECKED, check.cases, ""), *map(Paragraph, legend))
    )


# --- Plugins, builders and peers ---

# By the word for several of them: the registry, what one of their options is called, and where a suite names them.
_KINDS: dict[str, tuple[Registry[Any], str, str]] = {
    "plugins": (PLUGINS, "option", '[variants.V]  plugins = ["NAME", { name = "NAME", options = { OPTION = ... } }]'),
    "builders": (BUILDERS, "parameter", '[models.M]  builder = "NAME"  params = { PARAMETER = ... }'),
    "peers": (PEERS, "option", 'peers = ["NAME", { name = "NAME", options = { OPTION = ... } }]'),
}


@dataclass(frozen=True, kw_only=True)
class Registered:
    """What is registered by one name."""

    kind: str  # `plugins`, `builders` or `peers`
    name: str
    package: str  # What brings it, with the package's version
    version: str = ""
    description: str = ""
    backends: tuple[str, ...] = ()  # That a plugin is for; (): all
    toolchains: str = ""  # A specifier of the releases that a plugin is for; "": all
    options: tuple[Option, ...] = ()
    unavailable: str = ""  # Why it cannot be used here, as a sentence; "": it can

    @property
    def suits(self) -> str:
        """What a plugin is for, in words: `llvm-cpu, IREE >=3.12`."""
        return ", ".join([*self.backends, *([f"IREE {self.toolchains}"] if self.toolchains else [])])


def find_registered(names: Sequence[str] = ()) -> tuple[Registered, ...]:
    """All that is registered, or what is by these names; of a package that is broken, why."""
    known = sorted({name for registry, _, _ in _KINDS.values() for name in registry.names})
    for name in names:
        if name not in known:
            raise UsageError(f"there is no plugin, builder or peer {name!r}{did_you_mean(name, known)}")
    return tuple(
        _registered(kind, registry, name)
        for kind, (registry, _, _) in _KINDS.items()
        for name in registry.names
        if not names or name in names
    )


def _registered(kind: str, registry: Registry[Any], name: str) -> Registered:
    known = Registered(kind=kind, name=name, package=registry.distribution_of(name))
    try:
        found: Plugin[Any] | Builder[Any] | Peer[Any] = registry.find(name)
        taken = found.parameters if isinstance(found, Builder) else found.options
        known = replace(known, description=found.description, options=options_of(taken, f"{registry.noun} {name!r}"))
    except SuiteError as error:
        return replace(known, unavailable=str(error))
    if isinstance(found, Peer):
        return replace(known, unavailable=AppliedPeer(peer=found, label=name, options={}).missing or "")
    known = replace(known, version=found.version)
    return replace(known, backends=found.backends, toolchains=found.toolchains) if isinstance(found, Plugin) else known


def registered_page(found: Sequence[Registered]) -> Page:
    """A table of names and one of options for each kind."""
    parts: list[Part] = []
    counts = []
    for kind, (registry, option, use) in _KINDS.items():
        rows = [row for row in found if row.kind == kind]
        counts.append(plural(len(rows), registry.noun))
        if rows:
            tones: list[Tone] = ["dim" if row.unavailable else "" for row in rows]
            fields: list[Field[Registered]] = [
                Field(title=registry.noun, kind="name", value=lambda row: row.name),
                Field(title="for", kind="text", value=lambda row: row.suits),
                Field(title="package", kind="text", value=lambda row: row.package or None, rank=1),
                Field(title="what it does", kind="sentence", value=lambda row: (row.description, row.unavailable)),
                Field(title=f"{option}s", kind="sentence", value=lambda row: tuple(map(_option, row.options))),
            ]
            parts += [Heading(kind.capitalize()), *table_of(fields, rows, "", tones=tones)]
            parts.append(Code(use))
    return Page(verdict=f"{counts[0]}, {counts[1]} and {counts[2]}.", parts=parts)


def _option(taken: Option) -> str:
    return (
        f"{taken.name}: {taken.takes}{', required' if taken.required else f' (default: {json.dumps(taken.default)})'}"
    )


def registered_json(found: Sequence[Registered]) -> str:
    """The same as one JSON document with `schema_version`; each option has its JSON Schema."""
    document: dict[str, list[dict[str, Any]]] = {kind: [] for kind in _KINDS}
    for row in found:
        record = asdict(row) | {"options": [{**asdict(taken), "type": taken.takes} for taken in row.options]}
        document[record.pop("kind")].append(record)
    return to_json(document)
