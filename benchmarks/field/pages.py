"""Findings -> docs/field/: an index with a map of cases x releases, a page a finding, and a section of the README."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image

from benchmarks.documents import replace_between
from benchmarks.field.field import Field, fate_of, ratios_of, slow_still
from benchmarks.field.findings import Change, Fault, Finding, Step
from benchmarks.field.parts import FLOOR, IS_COMMITTED, KEPT, PAGES, ROOT, read_json
from benchmarks.field.reproduce import FACTS, SCRIPT
from benchmarks.field.sureness import agreement_text, controls_text, known_reports_text
from benchmarks.field.upstream import SEARCHED, Report, told
from harness.explain.ir_diff import VAGUE
from harness.explain.summary_sentence import step_sentence
from harness.metrics import LATENCY
from harness.plots.canvas import THEMES
from harness.plots.heatmap import heatmap_of
from harness.records.comparison import Row
from harness.report.markdown import blocks, details, escape, fenced, name, table
from harness.report.releases import Line, ReleasePoint, Releases
from harness.report.releases import Step as ReleaseStep
from harness.report.units import interval_text, ratio_text, with_unit
from harness.text import plural

BEGIN, END = "<!-- made by `python -m benchmarks.field`: begin -->", "<!-- benchmarks.field: end -->"
_DEVICES = {
    "v3": "code for x86-64-v3, one thread",
    "host": "code for this processor, one thread",
    "v3-threads": "code for x86-64-v3, two threads",
    "host-threads": "code for this processor, two threads",
}
# Lines of IR that a page shows, and cases that its table has.
_MOST_LINES, _MOST_CASES, _MOST_FLAGS, _WORST = 40, 40, 12, 3
_MOST_BYTES = 4000  # Of a program that a page shows
# What a page fault takes at least, and which share of a step page faults have where they are told.
_FAULT_NS, _TOLD_SHARE = 1000, 0.25
_COLORS = 128  # In a picture's palette, which makes its file a quarter of the size
_NO_GPU = "No GPU was at hand: the suites language and operators on CUDA, HIP and Vulkan beside CPUs were not run."
_TELLING = ("the innermost loop has", "the code uses at most")  # Of the code, where explain knows no more of the IR
_SMALL = 1.25  # Times: a step of one program below it is folded away in the index


def write_pages(field: Field) -> None:
    """Write all pages and pictures again, and the README's section; what no finding has any more goes."""
    PAGES.mkdir(parents=True, exist_ok=True)
    slugs = {finding.slug for finding in field.findings} | {fault.slug for fault in field.faults}
    for old in PAGES.glob("*-*.md"):
        if old.stem not in slugs:
            old.unlink()
    for number, finding in enumerate(field.findings, start=1):
        (PAGES / f"{finding.slug}.md").write_text(_finding_page(number, finding, field))
    for fault in field.faults:
        (PAGES / f"{fault.slug}.md").write_text(_fault_page(fault, field))
    maps = {device: _draw_map(field, device) for device in _DEVICES if (field.lines["device"] == device).any()}
    (PAGES / "README.md").write_text(_index(field, [*maps.values()]))
    if IS_COMMITTED:
        replace_between(ROOT / "README.md", BEGIN, END, _section(field, next(iter(maps.values()))))


# --- The index ---


def _index(field: Field, maps: Sequence[Path]) -> str:
    cpus = sorted(set(field.lines["cpu"]))
    models, lines = field.lines["model"].nunique(), field.lines["line"].nunique()
    releases = field.releases
    intro = (
        f"{plural(models, 'program')} ({plural(lines, 'line')} with their targets and numbers of threads) under "
        f"{len(releases)} releases of IREE, {releases[0]} to {releases[-1]}, on {' and '.join(cpus)}. Every output was "
        "checked before anything was timed, and all releases of a program took turns in the same minutes. Below is "
        f"every step beyond {FLOOR:.0%} between neighbouring releases that was decided on one thread, and of those on "
        "two threads alone what was seen twice. Steps of one cause are told once, and numbered by their size: the "
        "logarithm of the ratio, summed over the cases that were decided. *now* is the largest case's time in the "
        "newest release, to that before the step, later steps included. `make field OUT=FOLDER` measures it again on "
        "any machine"
    )
    intro += f"; the figures are [Parquet tables]({os.path.relpath(KEPT, PAGES)})." if IS_COMMITTED else "."
    pictures = [f"![{_DEVICES[file.stem.removeprefix('map-')]}: cases x releases]({file.name})" for file in maps]
    return (
        blocks(
            "# What the releases of IREE did to users of CPUs",
            intro,
            *pictures,
            "## What became slower",
            *_findings(field, "slower"),
            "## What became faster",
            *_findings(field, "faster"),
            *_same_code(field),
            *_seen_once(field),
            "## How sure this is",
            controls_text(field),
            agreement_text(field),
            *([known_reports_text(field), f"Where no report was found: {SEARCHED}"] if IS_COMMITTED else []),
            *_faults(field),
            *(["## GPUs", _NO_GPU] if IS_COMMITTED else []),
        )
        + "\n"
    )


def _findings(field: Field, direction: str) -> Iterator[str]:
    """The findings of a direction; the small ones of one program folded away."""
    numbered = [pair for pair in enumerate(field.findings, start=1) if pair[1].steps[0].direction == direction]
    small = [pair for pair in numbered if _programs(pair[1]) == 1 and pair[1].steps[0].size < math.log(_SMALL)]
    yield _findings_table(field, [pair for pair in numbered if pair not in small])
    if small:
        each = " each" if len(small) > 1 else ""
        told = f"{plural(len(small), 'step')} of one program{each}, below {_SMALL:g} times"
        yield details(told, _findings_table(field, small))


def _findings_table(field: Field, findings: Sequence[tuple[int, Finding]], where: str = "") -> str:
    rows = [
        [
            str(number),
            f"[{escape(_headline(finding))}]({where}{finding.slug}.md)",
            f"{finding.steps[0].before} → {finding.steps[0].after}",
            f"{_programs(finding)}",
            _largest(finding.steps[0]),
            fate_of(finding, field),
            told(finding.report),
        ]
        for number, finding in findings
    ]
    if not rows:
        return "None."
    heads = ["", "what differs", "between", "programs", "largest, time to that before", "now", "upstream"]
    return table(heads, rows, numbers=[True, False, False, True])


def _same_code(field: Field) -> Iterator[str]:
    same = [change for change in field.changes if change.is_there and change.has_same_code]
    if same:
        yield "## Steps of the same code"
        yield (
            "Of the first case, both releases make the same IR of every dispatch and, as far as it is known, the same "
            "code, and submit them in the same way. What is left is the runtime, and where code and buffers lie in "
            "memory. The code of further cases was not compared."
        )
        rows = [
            [f"{change.largest.before} → {change.largest.after}", "; ".join(map(_largest, steps))]
            for change in same
            if (steps := [change.explained, *(step for step in change.decided if step != change.explained)])
        ]
        yield table(["between", "time to that before"], rows)


def _seen_once(field: Field) -> Iterator[str]:
    steps = [step for change in field.changes if not change.is_there for step in change.decided]
    open_ones = sum(change.explanation is None and not change.reason for change in field.changes)
    if steps:
        yield "## Seen once"
        yield "Decided by the run; explain measured it once more and did not see it again, so that no finding has it."
        rows = [[f"{step.before} → {step.after}", _largest(step)] for step in steps]
        yield table(["between", "time to that before"], rows)
    if open_ones:
        yield f"{plural(open_ones, 'more change')} that the run did not decide look like steps, and were not explained."


def _largest(step: Step) -> str:
    return f"{name(step.line)} {interval_text(step.ratio, step.low, step.high)}"


def _title(finding: Finding) -> str:
    step, programs = finding.steps[0], _programs(finding)
    several = f" and {programs - 1} more are" if programs > 1 else " is"
    times = f"{ratio_text(max(step.ratio, 1 / step.ratio))} times {step.direction}"
    return f"{step.model}{several} up to {times} since {step.after}: {_headline(finding)}"


def _headline(finding: Finding) -> str:
    """What explain says; where that is only where the IR differs, what is known from upstream."""
    report, part = finding.report, finding.changes[0].part
    if part is not None and VAGUE in part.what[0] and report is not None and not report.near:
        return report.text.partition(" (")[0]
    return _what(finding.changes[0])


def _programs(finding: Finding) -> int:
    return len({change.largest.model for change in finding.changes})


def _what(change: Change) -> str:
    """What the compiler does otherwise, as far as explain found it."""
    if (part := change.part) is not None:
        of_code = (what for what in part.what if VAGUE in part.what[0] and what.startswith(_TELLING))
        return next(of_code, part.what[0])
    if change.explanation is None and not change.reason:
        return "not explained yet"
    return "explain finds no cause"


def _faults(field: Field) -> Iterator[str]:
    for state, title in (("wrong", "Wrong outputs"), ("fails", "What does not compile or run")):
        faults = [fault for fault in field.faults if fault.state == state]
        if not faults:
            continue
        rows = []
        for fault in faults:
            spans = {line: _span(releases, field.releases) for line, releases in fault.lines.items()}
            models = dict.fromkeys(line.partition("@")[0] for line in spans)
            listed = ", ".join(map(name, list(models)[:6])) + (
                f" and {len(models) - 6} more" if len(models) > 6 else ""
            )
            link = f"[{escape(_message(fault))}]({fault.slug}.md)"
            rows.append([link, listed, ", ".join(dict.fromkeys(spans.values())), told(fault.report)])
        yield f"## {title}"
        yield table(["message of the first", "cases", "releases", "upstream"], rows)


def _message(fault: Fault) -> str:
    """What the first of its cases says, without what all of them do."""
    return fault.why.removeprefix("wrong output: its ").removeprefix("failed at compile: ")


def _fault_page(fault: Fault, field: Field) -> str:
    title = "gives wrong outputs" if fault.state == "wrong" else "does not compile or run"
    models = list(dict.fromkeys(line.partition("/")[0] for line in fault.lines))
    several = f" and {len(models) - 1} more" if len(models) > 1 else ""
    rows = [[name(line), _span(releases, field.releases)] for line, releases in fault.lines.items()]
    return (
        blocks(
            f"# {escape(models[0])}{several}: {title}",
            escape(fault.why),
            table(["case", "under IREE"], rows),
            "## Upstream",
            *_upstream(fault.report),
            *_reproduction(fault.slug, field),
        )
        + "\n"
    )


def _span(releases: Sequence[str], order: Sequence[str]) -> str:
    """`3.4.0 to 3.11.0, 3.13.0`: runs of neighbours."""
    spans: list[list[str]] = []
    for release in sorted(set(releases), key=order.index):
        if spans and order.index(release) == order.index(spans[-1][-1]) + 1:
            spans[-1].append(release)
        else:
            spans.append([release])
    return ", ".join(span[0] if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in spans)


# --- A finding ---


def _finding_page(number: int, finding: Finding, field: Field) -> str:
    first = finding.changes[0]
    step = first.largest
    rows = [_case_row(each, field) for each in finding.steps[:_MOST_CASES]]
    more = len(finding.steps) - len(rows)
    course = f"{field.releases[0]} to {field.releases[-1]}, to the first (-: no time)"
    heads = ["case", step.before, step.after, "ratio [95 % interval]", course]
    cpus = " and ".join(sorted(set(field.lines["cpu"])))
    return (
        blocks(
            f"# {escape(_title(finding))}",
            f"Between IREE {step.before} and {step.after}; {fate_of(finding, field)}. Measured on {cpus}; finding "
            f"{number} of [{len(field.findings)}](README.md).",
            table(heads, rows, numbers=[False, True, True]),
            f"{plural(more, 'more case')} with smaller steps." if more else "",
            "## Cause",
            *_cause(first),
            _faulting(step),
            *_other_causes(finding.changes[1:]),
            *_flags(finding, field),
            "## Upstream",
            *_upstream(finding.report),
            *_reproduction(finding.slug, field),
        )
        + "\n"
    )


def _other_causes(changes: Sequence[Change]) -> Iterator[str]:
    if changes:
        yield "## Its other programs"
        rows = [[name(f"{change.largest.model}/{change.largest.variant}"), escape(_what(change))] for change in changes]
        yield table(["program", "what differs"], rows[:_MOST_CASES])


def _case_row(step: Step, field: Field) -> list[str]:
    ratios = ratios_of(field, step.line)
    line = " ".join(f"{ratios[release]:.2f}" if release in ratios else "-" for release in field.releases)
    times = with_unit(step.base_ns), with_unit(step.head_ns)
    ratio = interval_text(step.ratio, step.low, step.high)
    return [name(step.line), *times, ratio if step.decided else f"{ratio}, not decided", line]


def _cause(change: Change) -> Iterator[str]:
    explanation, part, step = change.explanation, change.part, change.explained
    if explanation is None:
        yield escape(f"explain could not say: {change.reason}" if change.reason else "Not explained yet.")
        return
    labels = f"IREE {step.before}", f"IREE {step.after}"
    by = "By the run, and the cause by" if explanation.latency.verdict == "inconclusive" else "By"
    yield f"{by} `harness explain`: {escape(step_sentence(explanation, replace(_row(step), case=step.line), labels))}"
    if part is None:
        yield "No dispatch has a fifth of the step, in its direction, and IR that differs, as far as explain sees."
        return
    told = [f"- {escape(sentence)}" for sentence in part.what]
    yield f"In {name(part.operation or ', '.join(part.head))}, from phase {name(part.differs_at)} on:"
    yield "\n".join(told)
    if part.lines:
        yield details("IR that differs there", fenced("\n".join(part.lines[:_MOST_LINES]), "diff"))


def _faulting(step: Step) -> str:
    """A sentence where a slower call takes much of its time to fault in memory, which it did not before."""
    more = step.head_faults - step.base_faults
    if not more * _FAULT_NS > _TOLD_SHARE * (step.head_ns - step.base_ns) > 0:  # of NaN neither
        return ""
    return (
        f"A call of {name(step.line)} faults in {plural(round(step.base_faults), 'page')} under {step.before} and "
        f"{round(step.head_faults)} under {step.after}: the allocator gave them back to the system after the "
        "call before. It does so or not by where they lie in the heap, so that plain commands may not show this."
    )


def _flags(finding: Finding, field: Field) -> Iterator[str]:
    """Which flags of the newest release make what is slower in it faster."""
    slow = {step.line: step.variant for step in slow_still(finding, field)}
    if not slow:
        return
    tried = [each for each in field.tried if each.line in slow]
    if not tried:
        yield f"## Flags of {field.releases[-1]}"
        why = "yet" if "stock" in slow.values() else "beside those of its variant"
        yield f"None were tried {why}."
        return
    yield f"## Flags of {' and '.join(sorted({each.release for each in tried}))}"
    ran = {each.flags for each in tried if each.verdict != "failed"}
    yield f"{plural(len(ran), 'set')} of flags beside none, on {' and '.join(sorted({each.cpu for each in tried}))}:"
    faster = [each for each in tried if each.verdict == "faster" and (each.ratio or 1.0) < 1 / (1 + FLOOR)]
    faster.sort(key=lambda each: ([step.line for step in finding.steps].index(each.line), each.ratio or 1.0))
    heads = ["case", "flags", "time to that without", "on"]
    rows = [
        [name(each.line), name(" ".join(each.flags)), interval_text(each.ratio, each.low, each.high), each.cpu]
        for each in faster[:_MOST_FLAGS]
    ]
    yield table(heads, rows) if rows else "None makes it faster by a tenth."


def _upstream(report: Report | None) -> Iterator[str]:
    yield f"{told(report)}."
    if IS_COMMITTED and (report is None or report.near):  # nobody searched for those of one's own machine
        yield SEARCHED


def _reproduction(slug: str, field: Field) -> Iterator[str]:
    folder = PAGES / slug
    yield "## Reproduce"
    if not (folder / SCRIPT).is_file():
        yield (
            "No plain commands lie here, as no case of it is small enough or its run is not at hand; "
            "`harness export suites/field.toml MODEL` writes its program."
        )
        return
    facts, program = read_json(folder / FACTS), next(folder.glob("model.*"))
    yield (
        f"[{SCRIPT}]({folder.name}/{SCRIPT}) with [{program.name}]({folder.name}/{program.name}) beside it shows "
        f"{name(facts['line'])}, the largest whose program is small:"
    )
    yield fenced((folder / SCRIPT).read_text(), "sh")
    if program.stat().st_size < _MOST_BYTES:
        yield details(program.name, fenced(program.read_text(), "mlir"))
    for each in field.reproduced:
        if each.slug == slug:
            said = f"{ratio_text(each.plain)} times, which " if each.plain else ""
            agrees = "agrees" if each.agrees else f"does not agree ({escape(each.said or 'a smaller step or none')})"
            here = f"; the harness measures {interval_text(*each.here)} there" if each.here else ""
            yield f"Run again on {each.when[:10]} on {escape(each.cpu)}: {said}{agrees}{here}."


# --- Pictures, and the README ---


def _draw_map(field: Field, device: str) -> Path:
    """Draw all lines of a device; the picture's file."""
    found = _releases(field, device)
    cpus = ", ".join(sorted(set(field.lines.loc[field.lines["device"] == device, "cpu"])))
    drawing = heatmap_of(found, f"IREE's releases: {_DEVICES[device]}", [cpus])
    file = PAGES / f"map-{device}.png"
    drawn = Image.open(BytesIO(drawing.file(THEMES["light"], "png"))).convert("RGB")
    drawn.quantize(_COLORS).save(file, optimize=True)
    return file


def _releases(field: Field, device: str) -> Releases:
    """A device's lines and steps as of one run, controls left out."""
    lines: dict[str, Line] = {}
    for name_, rows in field.lines[field.lines["device"] == device].groupby("line", sort=False):
        facts = {key: str(rows[key].iloc[0]) for key in ("model", "variant", "device")}
        points = [_point(row) for row in rows.to_dict("records") if "+" not in row["release"]]
        lines[str(name_)] = Line(group="", host="", points=tuple(points), **facts)
    neighbours = [
        ReleaseStep(line=lines[step.line], before=step.before, after=step.after, between=(), row=_row(step))
        for finding in field.findings
        for step in finding.steps
        if step.device == device and step.decided
    ]
    return Releases(names=tuple(field.releases), lines=tuple(lines.values()), neighbours=tuple(neighbours))


def _point(row: Mapping[str, Any]) -> ReleasePoint:
    values: dict[str, Any] = {key: None if pd.isna(row[key]) else row[key] for key in ReleasePoint.__dataclass_fields__}
    return ReleasePoint(**values)


def _row(step: Step) -> Row:
    return Row(
        case=f"{step.line}:{step.after}",
        model=step.model,
        variant=step.variant,
        device=step.device,
        metric=LATENCY.name,
        verdict="regressed" if step.ratio > 1 else "improved",
        ratio=step.ratio,
        ci_low=step.low,
        ci_high=step.high,
        base_value=step.base_ns,
        head_value=step.head_ns,
    )


def _section(field: Field, picture: Path) -> str:
    slower = [pair for pair in enumerate(field.findings, start=1) if pair[1].steps[0].direction == "slower"]
    return blocks(
        f"![Cases x releases: {_DEVICES[picture.stem.removeprefix('map-')]}]({picture.relative_to(ROOT)})",
        f"On {' and '.join(sorted(set(field.lines['cpu'])))}; `@v3` is code for x86-64-v3, `@host` for that processor:",
        _findings_table(field, slower[:_WORST], where="docs/field/"),
    )
