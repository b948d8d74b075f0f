"""The columns of a run's rows, declared once: for tables, JSON and CSV; and the tables of ops and of the roofline."""

import math
import shlex
from dataclasses import asdict, replace
from typing import Any

from harness.report.data import Field, records, row_record, tabulate, to_csv, to_json
from harness.report.page import Column
from harness.report.releases import MANY, releases_of
from harness.report.run_report import Report, notes_of, outcome_text
from harness.report.run_rows import Row, Section
from harness.report.units import PLAIN, interval_text, three_digits

# Logarithms differ in their last bits between CPUs; nine digits are the same everywhere, and far below any noise.
_DIGITS = 9


def _field(name: str, path: str = "", **table: Any) -> Field[Row]:
    """A field of a row by a path to what may be None on the way; what logarithms went into is rounded."""
    steps = (path or name).split(".")
    derived = steps[0] in ("estimate", "peer_estimate", "attained", "counted")

    def value(row: Row) -> Any:
        found: Any = row
        for step in steps:
            found = getattr(found, step) if found is not None else None
        if not isinstance(found, float):
            return found
        if not math.isfinite(found):
            return None
        return float(f"{found:.{_DIGITS}g}") if derived else found

    return Field(name=name, value=value, **table)


def _metric(name: str, metric: str, **table: Any) -> Field[Row]:
    return Field(name=name, value=lambda row: row.figure(metric), **table)


FIELDS: tuple[Field[Row], ...] = (
    _field("case"),
    _field("group"),
    _field("model"),
    _field("variant", title="variant", kind="text"),
    _field("device"),
    _field("host"),
    _field("toolchain", title="toolchain", kind="text"),
    _field("baseline"),
    _field("compared_with"),
    _field("status"),
    _field("same_as"),
    _field("kind"),
    _field("latency_ns", title="latency", unit="ns"),
    _field("latency_low_ns", "latency.low_ns"),
    _field("latency_high_ns", "latency.high_ns"),
    _field("own_ns"),
    _field("generations", "latency.generations"),
    _field("rounds", "latency.rounds"),
    _field("ratio", "estimate.ratio"),
    _field("ratio_low", "estimate.low"),
    _field("ratio_high", "estimate.high"),
    _field("ratio_confidence", "estimate.confidence"),
    _field("ratio_generations", "estimate.generations"),
    _field("ratio_rounds", "estimate.rounds"),
    _field("peer"),
    _field("ratio_to_best_peer", "peer_estimate.ratio"),
    _field("ratio_to_best_peer_low", "peer_estimate.low"),
    _field("ratio_to_best_peer_high", "peer_estimate.high"),
    _field("operations_per_s", "attained.operations_per_s", title="GFLOP/s", unit="giga", rank=4),
    _field("compulsory_bytes_per_s", "attained.bytes_per_s"),
    _field("operations_per_byte", "attained.intensity"),
    _field("share_of_peak", "attained.peak_share"),
    _field("share_of_roof", "attained.roof_share", title="of the roof", unit="share", rank=4),
    _field("instructions_per_call", title="instr/call", unit="instructions", rank=2),
    _field("reference_ns"),
    _metric("dispatches", "dispatches", title="dispatches", rank=1),
    _metric("copies", "copies", title="copies", rank=3),
    _metric("fills", "fills", title="fills", rank=6),
    _metric("transient_bytes", "transient-memory", title="transient", unit="bytes", rank=1),
    _field("encoded_bytes", "counted.storage.encoded_bytes"),
    _field("encoded_unpadded_bytes", "counted.storage.unpadded_bytes"),
    _field("encoded_worst_ratio", "counted.storage.worst_ratio"),
    _metric("dispatch_bytes", "dispatch-size"),
    _metric("module_bytes", "module-size", title="module", unit="bytes", rank=5),
    _field("module_sha256", "build.module_sha256"),
    _metric("compile_ns", "compile-time", title="compile", unit="ns", rank=4),
    _field("compile_peak_rss_bytes", "build.peak_rss_bytes"),
    _metric("host_peak_bytes", "host-peak-memory"),
    _metric("device_peak_bytes", "device-peak-memory"),
    Field(name="checked_against", value=lambda row: row.check.against or None if row.check is not None else None),
    _field("checked_also_against", "check.also_against"),
    _field("not_checked_because", "check.no_second_opinion"),
    _field("checked_with_other_inputs", "check.other_inputs"),
    _field("error_spreads", "check.spreads"),
    _field("max_absolute_error", "check.max_absolute"),
    _field("max_relative_error", "check.max_relative"),
    _field("failure_stage", "failure.stage"),
    _field("failure_message", "failure.message"),
)

_STORAGE: tuple[Field[Row], ...] = (
    _field("", "counted.storage.encoded_bytes", title="encoded", unit="bytes"),
    _field("", "counted.storage.overhead", title="padding", unit="share"),
    _field("", "counted.storage.worst_ratio", title="worst case", unit="times"),
)


def main_columns(section: Section) -> list[Column]:
    """The columns of a section's table, without remarks."""
    columns = {column.title: column for column in tabulate(FIELDS, section.rows)}
    names = [columns.pop("variant"), columns.pop("toolchain")]
    if len({row.model for row in section.rows}) > 1:
        names[0] = replace(names[0], title="model", cells=[row.model for row in section.rows])
    latency = [columns.pop("latency")] if "latency" in columns else []
    ratios = [Column(f"vs {section.baseline}", list(map(outcome_text, section.rows)))]
    if section.best_peer:
        cells = [_peer_text(row, section.best_peer) for row in section.rows]
        ratios.append(Column(f"vs {section.best_peer}", cells, rank=1))
    last = [columns.pop(title) for title in ("module", "compile") if title in columns]
    several = len(section.toolchains) != 1
    return [*names[: 2 if several else 1], *latency, *ratios, *columns.values(), *last]


def _peer_text(row: Row, best_peer: str) -> str:
    if row.variant == best_peer and row.peer:
        return "best peer"
    estimate = row.peer_estimate
    return "" if estimate is None else interval_text(estimate.ratio, estimate.low, estimate.high)


def ir_columns(section: Section) -> list[Column]:
    """Variant, toolchain where there are several, counts of ops, and what encodings cost; [] where nobody asks."""
    keys = tuple(dict.fromkeys(key for row in section.rows for key in row.ir))
    if not keys and not any(row.counted and row.counted.storage for row in section.rows):
        return []
    counts = []
    for key in keys:
        phase, _, op = key.partition("/")
        cells = [PLAIN.text(row.ir.get(key)) for row in section.rows]
        counts.append(Column(op, cells, kind="number", unit=phase, rank=1))
    names = [column for column in main_columns(section) if column.title in ("model", "variant", "toolchain")]
    return [*names, *counts, *tabulate(_STORAGE, section.rows)]


def roofline_line(section: Section) -> str:
    """A call's work and the machine's peaks, in words; "" where neither is known."""
    parts, work, peak = [], section.work, section.peak
    if work is not None and work.failure is not None:
        parts.append(f"its arithmetic is not counted: {work.failure.message}")
    elif work is not None:
        text = f"{three_digits(work.operations)}FLOP a call on at least {three_digits(work.compulsory_bytes)}B"
        without = ", ".join(f"{name} ({count})" for name, count in work.uncounted.items())
        parts.append(f"{text}, without {without}" if without else text)
    if peak is not None:
        where = "one core" if peak.threads == 1 else f"{peak.threads} cores"
        if peak.failure is not None:
            parts.append(f"the peaks of {where} are not known: {peak.failure.message}")
        elif peak.operations_per_s is not None and peak.bytes_per_s is not None:
            parts.append(
                f"{where} of {peak.host or 'this machine'}: {three_digits(peak.operations_per_s)}FLOP/s in f32 "
                f"({peak.operations_by}), {three_digits(peak.bytes_per_s)}B/s ({peak.bytes_by})"
            )
    return "; ".join(parts)


def run_json(report: Report) -> str:
    """The run's facts, its rows and its counts."""
    rows = tuple(report.rows())
    names = ("group", "model", "device", "host", "call", "baseline")
    groups = [
        {
            **{name: getattr(section, name) for name in names},
            "baseline_refused": section.refused,
            "rounds_by_generation": section.rounds,
            "work": asdict(section.work) if section.work else None,
            "peak": asdict(section.peak) if section.peak else None,
        }
        for section in report.sections
    ]
    header = report.header
    of_header = ("id", "suite", "suite_name", "suite_description", "suite_sha256", "started")
    of_harness = ("harness_version", "harness_commit", "command", "settings", "environment")
    run = {
        **{name: getattr(header, name) for name in of_header},
        "finished": report.run.finished,
        **{name: getattr(report, name) for name in ("baseline", "machine", "cpu", "toolchains")},
        "peers": report.engines,
        **{name: getattr(header, name) for name in of_harness},
        "hosts": dict(report.run.environments),
        "shard": str(header.settings.get("shard") or ""),
    }
    return to_json(
        {
            "run": run,
            "summary": asdict(report.summary),
            "notes": notes_of(report),
            "groups": groups,
            "rows": [{**record, **_nested(row)} for record, row in zip(records(FIELDS, rows), rows, strict=True)],
            **(_over_releases(report) if len(header.toolchains) >= MANY else {}),
        }
    )


def _over_releases(report: Report) -> dict[str, Any]:
    found = releases_of(report)
    steps = [
        {"line": step.line.name, "before": step.before, "after": step.after, "between": step.between}
        | row_record(step.row)
        for step in found.steps
    ]
    return {"lines": [{"name": line.name, **vars(line)} for line in found.lines], "steps": steps}


def _nested(row: Row) -> dict[str, Any]:
    storage = row.counted.storage if row.counted is not None else None
    return {
        "failure_stderr": row.failure.stderr if row.failure else None,
        "ir": row.ir,
        "encoded_tensors": [asdict(tensor) for tensor in storage.tensors] if storage else None,
        "memory_by_device": [asdict(memory) for memory in row.reference.memory] if row.reference else [],
        "plugin_effects": [asdict(effect) for effect in row.build.effects] if row.build else [],
        "remarks": row.remarks,
        "repro": row.repro,
        "compile_flags": row.compile_flags,
        "run_flags": row.run_flags,
    }


def run_csv(report: Report) -> str:
    """All rows with all figures, unrounded, in base units; without the commands that repeat them, of several lines."""
    rows = tuple(report.rows())
    ops = tuple(dict.fromkeys(key for row in rows for key in row.ir))
    return to_csv(
        [
            {
                **record,
                **{f"ir {key}": row.ir.get(key) for key in ops},
                "compile_flags": shlex.join(row.compile_flags),
                "run_flags": shlex.join(row.run_flags),
                "remarks": "; ".join(row.remarks),
            }
            for record, row in zip(records(FIELDS, rows), rows, strict=True)
        ]
    )
