"""The columns of a run's rows, declared once: for tables, JSON and CSV; and the tables of ops and of the roofline."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from harness.records.run import DeviceMemory, Peak, Work
from harness.report.data import Field, records, tabulate, to_csv, to_json
from harness.report.page import Column
from harness.report.run_report import TAKEN, Report
from harness.report.run_row import Row, Section
from harness.report.run_words import outcome_text, peer_text
from harness.report.units import NOTHING, PLAIN, three_digits

# Logarithms differ in their last bits between CPUs; nine digits are the same everywhere, and far below any noise.
_DIGITS = 9


def _field(name: str, path: str = "", **table: Any) -> Field[Row]:
    """A field of a row by its name, or by a path to what may be None on the way; what is no number is none."""
    steps = (path or name).split(".")

    def value(row: Row) -> Any:
        found: Any = row
        for step in steps:
            found = getattr(found, step) if found is not None else None
        return None if isinstance(found, float) and not math.isfinite(found) else found

    return Field(name=name, value=value, **table)


def _derived(name: str, path: str, **table: Any) -> Field[Row]:
    """The same of a figure that logarithms went into, rounded."""
    exact = _field(name, path).value

    def value(row: Row) -> Any:
        figure = exact(row)
        return float(f"{figure:.{_DIGITS}g}") if isinstance(figure, float) else figure

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
    _derived("ratio", "estimate.ratio"),
    _derived("ratio_low", "estimate.low"),
    _derived("ratio_high", "estimate.high"),
    _derived("ratio_confidence", "estimate.confidence"),
    _field("ratio_generations", "estimate.generations"),
    _field("ratio_rounds", "estimate.rounds"),
    _field("peer"),
    _derived("ratio_to_best_peer", "peer_estimate.ratio"),
    _derived("ratio_to_best_peer_low", "peer_estimate.low"),
    _derived("ratio_to_best_peer_high", "peer_estimate.high"),
    _derived("operations_per_s", "attained.operations_per_s", title="GFLOP/s", unit="giga", rank=4),
    _derived("compulsory_bytes_per_s", "attained.bytes_per_s"),
    _derived("operations_per_byte", "attained.intensity"),
    _derived("share_of_peak", "attained.peak_share"),
    _derived("share_of_roof", "attained.roof_share", title="of the roof", unit="share", rank=4),
    _field("instructions_per_call", title="instr/call", unit="instructions", rank=2),
    _field("reference_ns"),
    _metric("dispatches", "dispatches", title="dispatches", rank=1),
    _metric("copies", "copies", title="copies", rank=3),
    _metric("fills", "fills", title="fills", rank=6),
    _metric("transient_bytes", "transient-memory", title="transient", unit="bytes", rank=1),
    _field("encoded_bytes", "counted.storage.encoded_bytes"),
    _field("encoded_unpadded_bytes", "counted.storage.unpadded_bytes"),
    _derived("encoded_worst_ratio", "counted.storage.worst_ratio"),
    _metric("dispatch_bytes", "dispatch-size"),
    _metric("module_bytes", "module-size", title="module", unit="bytes", rank=5),
    _field("module_sha256"),
    _metric("compile_ns", "compile-time", title="compile", unit="ns", rank=4),
    _field("compile_peak_rss_bytes", "build.peak_rss_bytes"),
    _metric("host_peak_bytes", "host-peak-memory"),
    _metric("device_peak_bytes", "device-peak-memory"),
    _field("checked_against"),
    _field("checked_also_against", "check.also_against"),
    _field("not_checked_because", "check.no_second_opinion"),
    _field("checked_with_other_inputs", "check.other_inputs"),
    _field("error_spreads", "check.spreads"),
    _field("max_absolute_error", "check.max_absolute"),
    _field("max_relative_error", "check.max_relative"),
    _field("failure_stage", "failure.stage"),
    _field("failure_message", "failure.message"),
)

_OWN_TIME: tuple[Field[Row], ...] = (_field("own_ns", title="own time", unit="ns"),)

_STORAGE: tuple[Field[Row], ...] = (
    _field("", "counted.storage.encoded_bytes", title="encoded", unit="bytes"),
    _field("", "counted.storage.overhead", title="padding", unit="share"),
    _field("", "counted.storage.worst_ratio", title="worst case", unit="times"),
)


def main_columns(section: Section) -> list[Column]:
    """Variant, toolchain where there are several, latency, ratio and what is columns of the module.

    Remarks are not among them.
    """
    columns = {column.title: column for column in tabulate(FIELDS, section.rows)}
    names = [columns.pop("variant"), columns.pop("toolchain")]
    latency = columns.pop("latency", None)
    ratios = [Column(f"vs {section.baseline}", list(map(outcome_text, section.rows)))]
    if section.best_peer:
        cells = [peer_text(row, section.best_peer) for row in section.rows]
        ratios.append(Column(f"vs {section.best_peer}", cells, rank=1))
    last = [columns.pop(title) for title in ("module", "compile") if title in columns]
    return [
        *names[: len(names) if len(section.toolchains) != 1 else 1],
        *([latency] if latency else []),
        *(tabulate(_OWN_TIME, section.rows) if _is_busy(section) else []),
        *ratios,
        *columns.values(),
        *_memory(section),
        *last,
    ]


def _is_busy(section: Section) -> bool:
    """Whether latencies have so much of other processes in them that ratios, without it, seem to contradict them."""
    taken = [1 - row.own_ns / row.latency_ns for row in section.rows if row.own_ns is not None and row.latency_ns]
    return bool(taken) and max(taken) > TAKEN


def _memory(section: Section) -> list[Column]:
    """Peak memory of each device, where there are several."""
    devices = max((tuple(memory.device for memory in _devices(row)) for row in section.rows), key=len, default=())
    if len(devices) < 2:
        return []

    def peak(place: int) -> Callable[[Row], int | None]:
        return lambda row: _devices(row)[place].device_peak_bytes if place < len(_devices(row)) else None

    fields = [
        Field(title=f"peak of {place}: {device}", unit="bytes", value=peak(place), rank=2)
        for place, device in enumerate(devices)
    ]
    return tabulate(fields, section.rows)


def _devices(row: Row) -> tuple[DeviceMemory, ...]:
    return row.reference.memory if row.reference is not None else ()


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
    names = [column for column in main_columns(section) if column.title in ("variant", "toolchain")]
    return [*names, *counts, *tabulate(_STORAGE, section.rows)]


def roofline_columns(section: Section) -> list[Column]:
    """Variant and how much of the machine each row uses; [] where nobody has a figure."""
    if not any(row.attained for row in section.rows):
        return []
    figures = [
        _reached(section, "arithmetic", "GFLOP/s", "operations_per_s", 1e9),
        _reached(section, "of the peak", "%", "peak_share", 0.01),
        _reached(section, "memory", "GB/s", "bytes_per_s", 1e9),
        _reached(section, "intensity", "FLOP/byte", "intensity", 1.0),
        _reached(section, "of the roof", "%", "roof_share", 0.01),
    ]
    columns = [Column("variant", [section.label(row) for row in section.rows]), *figures]
    return [column for column in columns if any(cell != NOTHING for cell in column.cells)]


def _reached(section: Section, title: str, unit: str, attribute: str, size: float) -> Column:
    def text(row: Row) -> str:
        value = getattr(row.attained, attribute, None)
        if value is None:
            return NOTHING
        return f"{value / size:,.0f}" if value / size >= 100 else f"{value / size:.3g}"

    return Column(title, list(map(text, section.rows)), kind="number", unit=unit)


def roofline_line(section: Section) -> str:
    """A call's work and the machine's peaks, in words; "" where neither is known."""
    return "; ".join(part for part in (_work_text(section.work), _peak_text(section.peak)) if part)


def _work_text(work: Work | None) -> str:
    if work is None:
        return ""
    if work.failure is not None:
        return f"its arithmetic is not counted: {work.failure.message}"
    text = f"{three_digits(work.operations)}FLOP a call on at least {three_digits(work.compulsory_bytes)}B"
    if work.uncounted:
        names = (f"{name} ({count})" for name, count in work.uncounted.items())
        text += f", without {', '.join(names)}"
    return text


def _peak_text(peak: Peak | None) -> str:
    if peak is None:
        return ""
    where = "one core" if peak.threads == 1 else f"{peak.threads} cores"
    if peak.failure is not None:
        return f"the peaks of {where} are not known: {peak.failure.message}"
    if peak.operations_per_s is None or peak.bytes_per_s is None:
        return ""
    whose = peak.host or "this machine"
    return (
        f"{where} of {whose}: {three_digits(peak.operations_per_s)}FLOP/s in f32 "
        f"({peak.operations_by}), {three_digits(peak.bytes_per_s)}B/s ({peak.bytes_by})"
    )


def run_json(report: Report) -> str:
    """The run's facts, its rows and its counts."""
    return to_json(
        {
            "run": {name: value for name, value in asdict(report.facts).items() if name != "results"},
            "summary": asdict(report.summary),
            "notes": report.notes,
            "groups": [
                {
                    "group": section.group,
                    "model": section.model,
                    "device": section.device,
                    "host": section.host,
                    "call": section.call,
                    "baseline": section.baseline,
                    "baseline_refused": section.refused,
                    "rounds_by_generation": section.rounds,
                    "work": asdict(section.work) if section.work else None,
                    "peak": asdict(section.peak) if section.peak else None,
                }
                for section in report.sections
            ],
            "rows": [
                {**record, **_nested(row)}
                for record, row in zip(records(FIELDS, tuple(report.rows())), report.rows(), strict=True)
            ],
        }
    )


def _nested(row: Row) -> dict[str, Any]:
    storage = row.counted.storage if row.counted is not None else None
    return {
        "failure_stderr": row.failure.stderr if row.failure else None,
        "ir": row.ir,
        "encoded_tensors": [asdict(tensor) for tensor in storage.tensors] if storage else None,
        "memory_by_device": [asdict(memory) for memory in _devices(row)],
        "plugin_effects": [asdict(effect) for effect in row.build.effects] if row.build else [],
        "remarks": row.remarks,
        "repro": row.repro,
        "compile_flags": row.compile_flags,
        "run_flags": row.run_flags,
    }


def run_csv(report: Report) -> str:
    """All rows with all figures, unrounded, in base units; an empty cell where there is none.

    The commands that repeat a row are left to the other formats, since they take several lines.
    """
    rows = tuple(report.rows())
    ops = tuple(dict.fromkeys(key for row in rows for key in row.ir))
    devices = max((len(_devices(row)) for row in rows), default=0)
    return to_csv(
        [
            {
                **record,
                **_device_memory(_devices(row), devices if devices > 1 else 0),
                **{f"ir {key}": row.ir.get(key) for key in ops},
                "compile_flags": shlex.join(row.compile_flags),
                "run_flags": shlex.join(row.run_flags),
                "remarks": "; ".join(row.remarks),
            }
            for record, row in zip(records(FIELDS, rows), rows, strict=True)
        ]
    )


def _device_memory(memory: Sequence[DeviceMemory], devices: int) -> dict[str, int | None]:
    columns = {}
    for number in range(devices):
        device = memory[number] if number < len(memory) else None
        columns[f"device {number} host_peak_bytes"] = device.host_peak_bytes if device else None
        columns[f"device {number} device_peak_bytes"] = device.device_peak_bytes if device else None
    return columns
