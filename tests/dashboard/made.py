"""A made-up history as a dashboard reads it: sixty nights of two suites, in one of which every name is an attack."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from harness.dashboard.gather import Gathered, gather
from harness.dashboard.site import make_dashboard
from harness.history.changes import Change
from harness.history.events import acknowledge, group_changes
from harness.history.series import History, usable_runs
from harness.progress import Progress
from harness.report.releases import Releases, releases_of
from harness.report.run_report import build_report
from harness.store.marks import Acknowledgement, Marks
from tests.history import made as history_made
from tests.history.made import InMemory
from tests.report.builders import FAILS, make_release_run
from tests.report.explanations import make_explanation

# A row of a table by its columns; those that are left out hold nothing.
Row = dict[str, Any]

MACHINE = "AMD EPYC, 2 cores, Debian GNU/Linux 12 (bookworm)"
REFERENCE = "3.12.0"
FIRST = datetime(2026, 1, 1, 2, 0, tzinfo=timezone.utc)
MADE = datetime(2026, 3, 2, 9, 30, tzinfo=timezone.utc)
NIGHTS = 60
STEP_AT = 40
MODELS = {"rdb": 4.0e7, "mlp": 2.1e5, "conv": 9.0e6}
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


def key_of_series(case: str, metric: str = "latency", role: str = "newest", suite: str = "blocks") -> str:
    return digest(f"{suite} {case} {metric} {role}")


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

    runs: Sequence[Row] = ()
    points: Sequence[Row] = ()
    cases: Sequence[Row] = ()
    comparisons: Sequence[Row] = ()
    changes: Sequence[Change] = ()
    said: Sequence[Acknowledgement] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def history(self) -> History:
        """The rows as tables to query."""
        rows = {table: getattr(self, table) for table in ("runs", "points", "cases", "comparisons")}
        history = InMemory(tables=rows, notes=self.notes)
        history.marks = Marks(acknowledgements=tuple(self.said))
        return history

    @cached_property
    def gathered(self) -> Gathered:
        """What the pages of its dashboard are made of."""
        return gather(self.history, "results", self.changes)


def make_run(night: int, suite: str = "blocks", **given: Any) -> Row:
    return {
        "run": run_id(night, suite), "suite": suite, "suite_file": f"suites/{suite}.toml",
        "started": (FIRST + timedelta(days=night)).isoformat(), "finished": True, "clock": "",
        "machine_class": MACHINE, "machine": "3f2a91c04b7e", "kernel": "6.1.0-25",
        "toolchain": toolchain(night), "revision": digest(toolchain(night), 40), "reference": REFERENCE,
        "cases": 18, "measured": 16, "failed": 1, "missing": 0,
        "noise": 0.008 + 0.003 * noise(night), "load_1min": 0.3 + 0.2 * noise(night, "load"),
        "selfcheck_flagged": 0, "selfcheck_rows": 400, "selfcheck_bound": 0.00746, "selfcheck_detects": 0.0121,
        "selfcheck_when": (FIRST + timedelta(days=night // 30 * 30)).isoformat(), **given,
    }  # fmt: skip


def _of_case(run: Row, case: str, role: str) -> Row:
    """What tells of a run's case in every table."""
    model, _, rest = case.partition("/")
    variant, _, device = rest.rpartition("@")
    return {
        "run": run["run"], "started": run["started"], "suite": run["suite"], "case": case, "case_id": digest(case),
        "model": model, "variant": variant, "device": device, "peer": "", "role": role,
        "toolchain": run["toolchain"] if role == "newest" else REFERENCE,
    }  # fmt: skip


def make_point(run: Row, case: str, metric: str, unit: str, value: float, *, role: str = "newest", **given: Any) -> Row:
    own = _of_case(run, case, role)
    return {
        **own, "series": key_of_series(case, metric, role, run["suite"]), "machine_class": MACHINE,
        "machine": run["machine"], "revision": run["revision"] if role == "newest" else digest(REFERENCE, 40),
        "module_sha256": digest(f"{case} {own['toolchain']}", 64), "metric": metric, "unit": unit, "value": value,
        **given,
    }  # fmt: skip


def make_case(run: Row, case: str, *, role: str = "newest", **given: Any) -> Row:
    own = _of_case(run, case, role)
    repro = f"harness export {run['suite_file']} {own['model']}\n# IREE {own['toolchain']}\niree-compile m.mlir"
    return {**own, "status": "measured", "stage": "", "message": "", "flags": "", "repro": repro, **given}


def make_change(case: str, metric: str = "latency", unit: str = "ns", **given: Any) -> Change:
    """A latency that became longer by 8 % at the step."""
    facts: dict[str, Any] = {
        "series": key_of_series(case, metric), "suite": "blocks", "case": case, "metric": metric, "unit": unit,
        "machine_class": MACHINE, "before": 4.0e7, "after": 4.32e7, "first_bad": run_id(STEP_AT),
        "last_good": run_id(STEP_AT - 1), "earliest": run_id(STEP_AT - 1), "latest": run_id(STEP_AT + 1),
        "until": run_id(STEP_AT), "started": (FIRST + timedelta(days=STEP_AT)).isoformat(),
        "evidence": "The toolchain changed, and the reference toolchain did not move.",
        "toolchain_before": f"{toolchain(STEP_AT - 1)} ({digest(toolchain(STEP_AT - 1), 10)})",
        "toolchain_after": f"{toolchain(STEP_AT)} ({digest(toolchain(STEP_AT), 10)})",
    }  # fmt: skip
    return history_made.make_change(**{**facts, **given})


def acknowledged(made: Made, case: str, state: Literal["acknowledged", "fixed"], note: str) -> Made:
    """The history with what somebody said of the changes of a case."""
    runs = usable_runs(made.history)
    events = [event for event in group_changes(made.changes, runs, 1) if event.lead.case == case]
    said = [replace(acknowledge(event, runs, state, note, "ann"), when="2026-02-12T09:00:00.000000+00:00")
            for event in events]  # fmt: skip
    return replace(made, said=[*made.said, *said])


EXPLAINED = make_explanation(notes=(EVIL,), command=(EVIL,))
OVER = run_id(NIGHTS - 1)  # A run that is also one over releases


def over_releases() -> dict[str, Releases]:
    """Three lines over four releases: a step, one beside a release under which it fails, and none."""
    lines: dict[str, list[float | str]] = {"rdb": [1.0, 2.0, 2.0, 2.0], EVIL: [1.0, 1.0, FAILS, 5.0]}
    run = make_release_run({**lines, "same": [1.0] * 4}, "3.9.0", "3.10.0", "3.11.0", "3.12.0")
    return {OVER: releases_of(build_report(run))}


COMPARISON = "20260212-080000-blocks-compare"


def make_row(case: str, ratio: float | None, verdict: str, **given: Any) -> Row:
    """A row of the comparison of the nights before and after the step."""
    own = _of_case(make_run(0), case, "newest")
    return {
        "comparison": COMPARISON, "created": "2026-02-12T08:00:00+00:00", "machine": f"machine 3f2a91c04b7e, {MACHINE}",
        "base_run": run_id(STEP_AT - 1), "head_run": run_id(STEP_AT),
        **{name: own[name] for name in ("case", "model", "variant", "device")},
        "metric": "latency", "unit": "ns", "verdict": verdict, "ratio": ratio, "p": 0.0004, "floor": 0.01,
        "ci_low": ratio and ratio * 0.99, "ci_high": ratio and ratio * 1.01,
        "base_value": 4e7, "head_value": ratio and 4e7 * ratio, "control": False, "gate": "", "command": "",
        "within": False, "explained": "", "reason": "confirmed in 16 fresh generations", **given,
    }  # fmt: skip


def a_history() -> Made:
    """Three models in three variants beside a peer, with a step; and hostile names."""
    runs = [make_run(night) for night in range(NIGHTS)]
    hostile = [make_run(night, EVIL, clock="it stands a year ahead" if night == 3 else "") for night in range(8)]
    evil = [(run, case) for run in hostile for case in HOSTILE]
    points = [point for night, run in enumerate(runs) for point in _points(run, night)]
    points += [make_point(run, case, "latency", "ns", 1e6) for run, case in evil]
    cases = [case for run in runs for case in _cases(run)]
    cases += [make_case(run, case, message=EVIL, repro=f"echo '{EVIL}'") for run, case in evil]
    return Made(
        runs=[*runs, *hostile],
        points=points,
        cases=cases,
        comparisons=_rows(),
        changes=_changes(),
        notes=(f"Folder {EVIL} is left out: it is a symlink.",),
    )


def _points(run: Row, night: int) -> list[Row]:
    found = []
    for model, base in MODELS.items():
        times = {
            variant: base * size * (1 + 0.008 * noise(model, variant, night)) for variant, size in VARIANTS.items()
        }
        if model == "rdb" and night >= STEP_AT:
            times["stock"] *= 1.08
        for variant, value in times.items():
            case = f"{model}/{variant}@cpu"
            steady = base * VARIANTS[variant] * (1 + 0.008 * noise(model, variant, night, "reference"))
            found += [
                make_point(run, case, "latency", "ns", value, low=value * 0.99, high=value * 1.015),
                make_point(run, case, "latency", "ns", steady, role="reference"),
                make_point(run, case, "dispatches", "count", 14 + (night >= STEP_AT and model == "rdb")),
                make_point(run, case, "module-size", "bytes", 812_345 + 64 * (night // 9)),
            ]
            if variant != "stock":
                # As in a run on a busy machine, whose medians are in another order than what ran side by side.
                ratio = 0.5 if (model, variant) == ("mlp", "winograd") else value / times["stock"]
                bounds: dict[str, Any] = {"low": ratio * 0.995, "high": ratio * 1.005}
                found.append(make_point(run, case, "latency-vs-baseline", "ratio", ratio, **bounds))
        peer = {"peer": "onnxruntime", "toolchain": "ONNX Runtime 1.31.1", "revision": "", "module_sha256": ""}
        found.append(make_point(run, f"{model}/onnxruntime@cpu", "latency", "ns", times["stock"] * 0.7, **peer))
    more = (("compile-time", "ns", 1.783e9), ("transient-memory", "bytes", 19_003_904),
            ("host-peak-memory", "bytes", 20_316_160))  # fmt: skip
    return [*found, *(make_point(run, "rdb/stock@cpu", *figure) for figure in more)]


def _cases(run: Row) -> list[Row]:
    roles = ("newest", "reference")
    found = [make_case(run, f"{model}/{variant}@cpu", role=role)
             for model in MODELS for variant in VARIANTS for role in roles]  # fmt: skip
    failed = {"status": "failed", "stage": "compile", "message": "iree-compile exited with status 1"}
    # One of them is planned from a later night on.
    failing = ["conv", "rdb", *(["mlp"] if run["run"] >= run_id(50) else [])]
    return [*found, *(make_case(run, f"{model}/fused@cpu", **failed) for model in failing)]


def _rows() -> list[Row]:
    differs = "head's output 0 differs in 4 of 6 values, worst at [1]: 0.2497925 where 3.057575 is base's"
    return [
        make_row("rdb/stock@cpu", 1.081, "regressed"),
        make_row("rdb/data-tiling@cpu", 1.002, "unchanged", p=0.8),
        make_row("mlp/stock@cpu", 0.951, "improved", gate="passed"),
        make_row("mlp/winograd@cpu", 1.013, "inconclusive", p=0.04),
        make_row("conv/stock@cpu", None, "identical", reason="same module bytes, same runtime"),
        *(make_row(f"conv/{variant}@cpu", None, "outputs differ", reason=differs)
          for variant in ("data-tiling", "winograd")),
        make_row("conv/fused@cpu", None, "failed", reason=f"fails at compile {EVIL}"),
        make_row("rdb/stock@cpu", 1.0714, "regressed", metric="dispatches", unit="count", base_value=14, head_value=15,
                 ci_low=None, ci_high=None, p=None, floor=0.0, gate="violated"),
        make_row("conv/stock@cpu", 1.0004, "unchanged", control=True),
        *(make_row(case, 1.0 + number / 50, "regressed") for number, case in enumerate(HOSTILE)),
        make_row("rdb/stock@cpu", 1.001, "unchanged", base_run=run_id(20), head_run=run_id(30),
                 comparison="20260201-080000-blocks-compare", created="2026-02-01T08:00:00+00:00"),
    ]  # fmt: skip


def _changes() -> list[Change]:
    count: dict[str, Any] = {"metric": "dispatches", "unit": "count", "direction": "more"}
    long_ago = {name: run_id(20) for name in ("first_bad", "earliest", "latest", "until")}
    return [
        make_change("rdb/stock@cpu"),
        make_change("conv/stock@cpu", direction="faster", after=3.76e7, cause="machine", **long_ago,
                    last_good=run_id(19), started=(FIRST + timedelta(days=20)).isoformat(),
                    evidence="The kernel changed from 6.1.0-25 to 6.1.0-28."),
        make_change("rdb/stock@cpu", before=14, after=15, earliest=run_id(STEP_AT), latest=run_id(STEP_AT), **count),
        make_change("mlp/stock@cpu", before=0, after=3, **count),
    ]  # fmt: skip


def make_site(out: Path, made: Made, **given: Any) -> Path:
    """The dashboard of a made-up history; the folder."""
    make_dashboard(made.history, made.changes, out, Progress(), made=MADE, **given)
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
