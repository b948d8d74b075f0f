"""A made-up history as a dashboard reads it: sixty nights of two suites, in one of which every name is an attack."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from harness.dashboard import make_dashboard
from harness.dashboard.gather import Gathered, gather
from harness.history.changes import Change
from harness.history.events import acknowledge, group_changes
from harness.history.series import History, usable_runs
from harness.progress import Silent
from harness.store.marks import Acknowledgement, Marks
from tests.history.made import InMemory

MACHINE = "AMD EPYC, 2 cores, Debian GNU/Linux 12 (bookworm)"
REFERENCE = "3.12.0"
FIRST = datetime(2026, 1, 1, 2, 0, tzinfo=timezone.utc)
MADE = datetime(2026, 3, 2, 9, 30, tzinfo=timezone.utc)
NIGHTS = 60
STEP_AT = 40
FUSED_MLP_AT = 50  # the night from which on it is planned, and fails
VARIANTS = {"stock": 1.0, "data-tiling": 0.62, "winograd": 0.81}

EVIL = "<script>window.broken=1</script>"
HOSTILE = (
    f"{EVIL}/\"'><img src=x onerror=window.broken=1>@cpu",
    "line\nbreak\u2028and\u2029more/`|*_&lt;@cpu",
    "🏖️ ‮right-to-left/\x1b[31mred\x1b[0m\x07@cpu",
    "x" * 10_000 + "/long@cpu",
    "__proto__/constructor@cpu",
    "</script><!--/${window.broken=1}{{7*7}}{% raw %}@cpu",
)


def digest(text: str, digits: int = 16) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def key_of_series(case: str, metric: str = "latency") -> str:
    """The key of a series of suite `blocks` under the newest toolchain."""
    return digest(f"blocks {case} {metric} newest")


def run_id(night: int, suite: str = "blocks") -> str:
    return f"{FIRST + timedelta(days=night):%Y%m%d-%H%M%S}-{suite}"


def toolchain(night: int) -> str:
    return f"3.14.0rc{FIRST + timedelta(days=night):%Y%m%d}"


def noise(*seed: object) -> float:
    """Between -1 and 1, the same each time."""
    return int(digest(repr(seed), 8), 16) / 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Made:
    """Rows of a history, and its changes."""

    runs: Sequence[SimpleNamespace] = ()
    points: Sequence[SimpleNamespace] = ()
    cases: Sequence[SimpleNamespace] = ()
    comparisons: Sequence[SimpleNamespace] = ()
    changes: Sequence[Change] = ()
    said: Sequence[Acknowledgement] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def history(self) -> History:
        """The rows as tables to query."""
        rows = {table: list(map(vars, getattr(self, table))) for table in ("runs", "points", "cases", "comparisons")}
        history = InMemory(tables=rows, notes=self.notes)
        history.marks = Marks(acknowledgements=tuple(self.said))
        return history

    @cached_property
    def gathered(self) -> Gathered:
        """What the pages of its dashboard are made of."""
        return gather(self.history, "results", self.changes)


def make_run(night: int, suite: str = "blocks", **given: Any) -> SimpleNamespace:
    started = FIRST + timedelta(days=night)
    facts: dict[str, Any] = {
        "run": run_id(night, suite), "suite": suite, "suite_file": f"suites/{suite}.toml",
        "started": started.isoformat(), "finished": True, "machine_class": MACHINE, "machine": "3f2a91c04b7e",
        "cpu": "AMD EPYC", "cores": 2, "kernel": "6.1.0-25" if night < 20 else "6.1.0-28",
        "toolchain": toolchain(night),
        "revision": digest(toolchain(night), 40), "reference": REFERENCE, "harness_version": "0.1.0",
        "harness_commit": digest(f"harness {night // 30}", 40), "cases": 18, "measured": 16, "failed": 1, "missing": 0,
        "noise": 0.008 + 0.003 * noise(night), "load_1min": 0.3 + 0.2 * noise(night, "load"), "selfcheck_flagged": 0,
        "selfcheck_rows": 400, "selfcheck_bound": 0.00746, "selfcheck_detects": 0.0121,
        "selfcheck_when": FIRST.isoformat() if night < 30 else (FIRST + timedelta(days=30)).isoformat(),
        "clock": "",
        "command": f"harness run suites/{suite}.toml --toolchain {REFERENCE} --toolchain {toolchain(night)}",
    }  # fmt: skip
    return SimpleNamespace(**{**facts, **given})


def make_point(run: SimpleNamespace, case: str, metric: str, unit: str, value: float, **given: Any) -> SimpleNamespace:
    model, _, rest = case.partition("/")
    variant, _, device = rest.rpartition("@")
    role = given.get("role", "newest")
    facts: dict[str, Any] = {
        "run": run.run, "started": run.started, "series": digest(f"{run.suite} {case} {metric} {role}"),
        "suite": run.suite, "case": case, "case_id": digest(case), "model": model, "variant": variant, "device": device,
        "peer": "", "role": "newest", "toolchain": run.toolchain if role == "newest" else REFERENCE,
        "revision": run.revision if role == "newest" else digest(REFERENCE, 40), "machine_class": MACHINE,
        "machine": run.machine, "metric": metric, "unit": unit, "value": value, "low": None, "high": None,
        "module_sha256": digest(f"{case} {role} {run.toolchain if role == 'newest' else ''}", 64),
    }  # fmt: skip
    return SimpleNamespace(**{**facts, **given})


def make_case(run: SimpleNamespace, case: str, **given: Any) -> SimpleNamespace:
    point = make_point(run, case, "latency", "ns", 1.0, **({"role": given["role"]} if "role" in given else {}))
    shared = ("run", "started", "suite", "case", "case_id", "model", "variant", "device", "peer", "role", "toolchain")
    facts: dict[str, Any] = {name: getattr(point, name) for name in shared} | {
        "status": "measured", "stage": "", "message": "", "flags": "--iree-opt-level=O3",
        "repro": f"harness export {run.suite_file} {point.model}\n# IREE {point.toolchain}\niree-compile m.mlir",
    }  # fmt: skip
    return SimpleNamespace(**{**facts, **given})


def make_change(case: str, metric: str = "latency", unit: str = "ns", **given: Any) -> Change:
    facts: dict[str, Any] = {
        "series": digest(f"blocks {case} {metric} newest"), "suite": "blocks", "case": case, "metric": metric,
        "unit": unit, "machine_class": MACHINE, "role": "newest", "kind": "step", "direction": "slower", "ratio": 1.08,
        "before": 4.0e7, "after": 4.32e7, "first_bad": run_id(STEP_AT), "last_good": run_id(STEP_AT - 1),
        "earliest": run_id(STEP_AT - 1), "latest": run_id(STEP_AT + 1),
        "started": (FIRST + timedelta(days=STEP_AT)).isoformat(), "p": 1e-9, "cause": "compiler",
        "evidence": "The toolchain changed, and the reference toolchain did not move.",
        "toolchain_before": f"{toolchain(STEP_AT - 1)} ({digest(toolchain(STEP_AT - 1), 10)})",
        "toolchain_after": f"{toolchain(STEP_AT)} ({digest(toolchain(STEP_AT), 10)})", "commits": "", "points": NIGHTS,
        "until": run_id(STEP_AT),
    }  # fmt: skip
    return Change(**{**facts, **given})


def acknowledged(made: Made, case: str, state: Literal["acknowledged", "fixed"], note: str) -> Made:
    """The history with what somebody said of the changes of a case."""
    runs = usable_runs(made.history)
    events = [event for event in group_changes(made.changes, runs, 1) if event.lead.case == case]
    said = [replace(acknowledge(event, runs, state, note, "ann"), when="2026-02-12T09:00:00.000000+00:00")
            for event in events]  # fmt: skip
    return replace(made, said=[*made.said, *said])


def make_row(case: str, ratio: float | None, verdict: str, **given: Any) -> SimpleNamespace:
    point = make_point(make_run(0), case, "latency", "ns", 1.0)
    facts: dict[str, Any] = {
        "comparison": "20260212-080000-blocks-compare", "created": "2026-02-12T08:00:00+00:00",
        "base_run": run_id(STEP_AT - 1), "head_run": run_id(STEP_AT), "machine": f"machine 3f2a91c04b7e, {MACHINE}",
        "case": case, "model": point.model, "variant": point.variant, "device": point.device, "metric": "latency",
        "verdict": verdict, "ratio": ratio, "ci_low": ratio and ratio * 0.99, "ci_high": ratio and ratio * 1.01,
        "p": 0.0004, "floor": 0.01, "base_value": 4e7, "head_value": ratio and 4e7 * ratio, "unit": "ns",
        "control": False, "gate": "", "command": "", "within": False, "base_commit": "", "head_commit": "",
        "explained": "",
        "reason": "confirmed in 16 fresh generations",
    }  # fmt: skip
    return SimpleNamespace(**{**facts, **given})


def make_comparison_key() -> str:
    """Of the newest comparison."""
    return digest("20260212-080000-blocks-compare")


def a_history(nights: int = NIGHTS) -> Made:
    """Three models in three variants beside a peer, with a step, a drift and a new kernel; and hostile names."""
    runs = [make_run(night) for night in range(nights)]
    hostile = [make_run(night, EVIL, machine_class=MACHINE, clock="it stands a year ahead" if night == 3 else "")
               for night in range(8)]  # fmt: skip
    made = Made(
        runs=[*runs, *hostile],
        points=[point for run in runs for point in _points(run, runs.index(run))]
        + [
            make_point(run, case, "latency", "ns", 1e6, series=digest(f"{case} hostile"))
            for run in hostile
            for case in HOSTILE
        ],
        cases=[case for run in runs for case in _cases(run)]
        + [make_case(run, case, message=EVIL, repro=f"echo '{EVIL}'") for run in hostile for case in HOSTILE],
        comparisons=_rows(),
        changes=_changes(),
        notes=(f"Folder {EVIL} is left out: it is a symlink.",),
    )
    return made if nights == NIGHTS else replace(made, changes=())


def _latency(model: str, variant: str, night: int) -> float:
    base = {"rdb": 4.0e7, "mlp": 2.1e5, "conv": 9.0e6}[model] * VARIANTS[variant]
    if model == "rdb" and variant == "stock" and night >= STEP_AT:
        base *= 1.08
    if model == "mlp":
        base *= 1 + 0.03 * min(max(night - 10, 0), 30) / 30
    return base * _machine(model, night) * (1 + 0.008 * noise(model, variant, night))


def _machine(model: str, night: int) -> float:
    """What the machine's kernel does to every toolchain alike."""
    return 1.066 if model == "conv" and night < 20 else 1.0


def _points(run: SimpleNamespace, night: int) -> list[SimpleNamespace]:
    found = []
    for model in ("rdb", "mlp", "conv"):
        times = {variant: _latency(model, variant, night) for variant in VARIANTS}
        for variant, value in times.items():
            case = f"{model}/{variant}@cpu"
            found.append(make_point(run, case, "latency", "ns", value, low=value * 0.99, high=value * 1.015))
            machine = (
                _machine(model, night) / _machine(model, 0) * (1 + 0.008 * noise(model, variant, night, "reference"))
            )
            steady = _latency(model, variant, 0) * machine
            found.append(make_point(run, case, "latency", "ns", steady, role="reference"))
            if variant != "stock":
                # As in a run on a busy machine, whose medians are in another order than what ran side by side.
                ratio = 0.5 if (model, variant) == ("mlp", "winograd") else value / times["stock"]
                found.append(
                    make_point(run, case, "latency-vs-baseline", "ratio", ratio, low=ratio * 0.995, high=ratio * 1.005)
                )
            found.append(make_point(run, case, "dispatches", "count", 14 + (night >= STEP_AT and model == "rdb")))
            found.append(make_point(run, case, "module-size", "bytes", 812_345 + 64 * (night // 9)))
        if model == "rdb":
            for metric, unit, value in (("compile-time", "ns", 1.783e9), ("transient-memory", "bytes", 19_003_904),
                                        ("host-peak-memory", "bytes", 20_316_160)):  # fmt: skip
                found.append(make_point(run, "rdb/stock@cpu", metric, unit, value))
        peer = {"peer": "onnxruntime", "toolchain": "ONNX Runtime 1.31.1", "revision": "", "module_sha256": ""}
        found.append(make_point(run, f"{model}/onnxruntime@cpu", "latency", "ns", times["stock"] * 0.7, **peer))
    return found


def _cases(run: SimpleNamespace) -> list[SimpleNamespace]:
    found = [
        make_case(run, f"{model}/{variant}@cpu", role=role)
        for model in ("rdb", "mlp", "conv")
        for variant in VARIANTS
        for role in ("newest", "reference")
    ]
    failing = [
        "conv/fused@cpu",
        "rdb/fused@cpu",
        *(["mlp/fused@cpu"] if run.run >= run_id(FUSED_MLP_AT) else []),
    ]
    message = "iree-compile exited with status 1"
    return [*found, *(make_case(run, case, status="failed", stage="compile", message=message) for case in failing)]


def _rows() -> list[SimpleNamespace]:
    rows = [
        make_row("rdb/stock@cpu", 1.081, "regressed"),
        make_row("rdb/data-tiling@cpu", 1.002, "unchanged", p=0.8),
        make_row("mlp/stock@cpu", 0.951, "improved", gate="passed"),
        make_row("mlp/winograd@cpu", 1.013, "inconclusive", p=0.04),
        make_row("conv/stock@cpu", None, "identical", reason="same module bytes, same runtime"),
        *(make_row(f"conv/{variant}@cpu", None, "outputs differ", reason="head's output 0 differs in 4 of 6 values, "
                   "worst at [1]: 0.2497925 where 3.057575 is base's") for variant in ("data-tiling", "winograd")),
        make_row("conv/fused@cpu", None, "failed", reason=f"fails at compile {EVIL}"),
        make_row("rdb/stock@cpu", 1.0714, "regressed", metric="dispatches", unit="count", base_value=14, head_value=15,
                 ci_low=None, ci_high=None, p=None, floor=0.0, gate="violated"),
        make_row("conv/stock@cpu", 1.0004, "unchanged", control=True),
        *(make_row(case, 1.0 + number / 50, "regressed") for number, case in enumerate(HOSTILE)),
    ]  # fmt: skip
    older = {"comparison": "20260201-080000-blocks-compare", "created": "2026-02-01T08:00:00+00:00"}
    return [*rows, make_row("rdb/stock@cpu", 1.001, "unchanged", base_run=run_id(20), head_run=run_id(30), **older)]


def _changes() -> list[Change]:
    drift = make_change(
        "mlp/stock@cpu", kind="drift", ratio=1.03, before=2.1e5, after=2.163e5, cause="unknown", p=1e-5,
        evidence="Toolchains changed all the while, and no run has two of them.", first_bad=run_id(12),
        last_good=run_id(11), earliest=run_id(6), latest=run_id(17), until=run_id(40),
        started=(FIRST + timedelta(days=12)).isoformat(),
    )  # fmt: skip
    machine = make_change(
        "conv/stock@cpu", direction="faster", ratio=0.94, before=9.6e6, after=9.0e6, cause="machine",
        evidence="The kernel changed from 6.1.0-25 to 6.1.0-28, and the reference toolchain moved as much.",
        first_bad=run_id(20), last_good=run_id(19), earliest=run_id(20), latest=run_id(20), until=run_id(20),
        started=(FIRST + timedelta(days=20)).isoformat(),
    )  # fmt: skip
    counted = make_change("rdb/stock@cpu", "dispatches", "count", direction="more", ratio=15 / 14, before=14, after=15,
                          earliest=run_id(STEP_AT), latest=run_id(STEP_AT), p=0.0)  # fmt: skip
    nothing = make_change("mlp/stock@cpu", "dispatches", "count", direction="more", ratio=math.inf, before=0, after=3)
    return [make_change("rdb/stock@cpu"), drift, machine, counted, nothing]


def make_site(out: Path, made: Made, **given: Any) -> Path:
    """The dashboard of a made-up history; the folder."""
    make_dashboard(made.history, made.changes, out, Silent(), made=MADE, **given)
    return out


# --- What pages load, read as static/data.js reads it ---


def load(site: Path, key: str) -> Any:
    """The payload of `data/<key>.js`."""
    text = (site / "data" / f"{key}.js").read_text("ascii")
    before, after = f'dashboard.put("{key}",', ");\n"
    assert text.startswith(before)
    assert text.endswith(after)
    return json.loads(text[len(before) : -len(after)])


def decode(column: Any, rows: int) -> list[Any]:
    """One column as a list."""
    if column is None:
        return [None] * rows
    return [column["texts"][place] for place in column["at"]] if isinstance(column, dict) else list(column)


def table(payload: dict[str, Any]) -> dict[str, list[Any]]:
    """All columns; each has as many values as the table says rows."""
    columns = {name: decode(column, payload["rows"]) for name, column in payload["columns"].items()}
    assert all(len(values) == payload["rows"] for values in columns.values())
    return columns
