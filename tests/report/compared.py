"""Hand-made comparisons: what `harness compare` would have found, with every kind of row in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness.metrics import METRICS
from harness.records.comparison import (
    VERDICTS,
    Comparison,
    GeometricMean,
    MachineFacts,
    Row,
    SelfcheckFacts,
    SideFacts,
    Verdict,
)
from harness.report.links import Image, Images, Links

MACHINE = "machine 3f2a91c04b7e (virtual), AMD EPYC, 2 cores, Debian GNU/Linux 12"
SELFCHECK = SelfcheckFacts(
    flagged=0,
    rows=400,
    upper_bound=0.00746,
    detects=0.0121,
    seconds=15.2,
    when="2026-11-20T09:00:00+00:00",
    suite="suites/esrgan.toml",
)
VERIFIER_SAYS = """\
model.mlir:14:12: error: 'linalg.conv_2d_nchw_fchw' op failed to legalize
    %2 = linalg.conv_2d_nchw_fchw ins(%0, %1 : tensor<1x64x92x64xf32>, tensor<32x64x3x3xf32>)
         ^
"""


def make_row(case: str, metric: str = "latency", verdict: Verdict = "unchanged", **given: Any) -> Row:
    """A row of a case named `model/variant@device`; its ratio is that of its values unless one is given."""
    model, _, rest = case.partition("/")
    variant, _, device = rest.partition("@")
    facts: dict[str, Any] = {"model": model, "variant": variant, "device": device}
    if metric in METRICS:
        facts |= {"unit": METRICS[metric].unit, "floor": METRICS[metric].floor}
    base, head = given.get("base_value"), given.get("head_value")
    if base and head is not None:
        facts["ratio"] = round(head / base, 6)
    return Row(case=case, metric=metric, verdict=verdict, **{**facts, **given})


def make_timed(case: str, base_ms: float, ratio: float, verdict: Verdict, **given: Any) -> Row:
    """A latency row that was measured, with an interval of half a percent either way."""
    facts: dict[str, Any] = {
        "base_value": base_ms * 1e6,
        "head_value": round(base_ms * 1e6 * ratio),
        "ratio": ratio,
        "ci_low": round(ratio * 0.995, 6),
        "ci_high": round(ratio * 1.005, 6),
        "p": 0.8,
        "generations": 16,
        "rounds": 320,
        "seconds": 5.25,
        "repro": (f"harness compare results/old results/new --filter '{case}'",),
    }
    return make_row(case, given.pop("metric", "latency"), verdict, **{**facts, **given})


def make_side(label: str, version: str, **given: Any) -> SideFacts:
    facts: dict[str, Any] = {
        "label": label,
        "run": f"2026-11-21T08-00-00Z-esrgan-{version}",
        "suite": "suites/esrgan.toml",
        "started": "2026-11-21T08:00:00+00:00",
        "toolchains": (f"{version} (f17ed20a11)",),
        "machine": MACHINE,
    }
    return SideFacts(**{**facts, **given})


def make_comparison(rows: Sequence[Row], **given: Any) -> Comparison:
    """A comparison of two releases, measured side by side on a machine that was checked."""
    timed = [row.verdict for row in rows if row.metric == "latency" and not row.control]
    flagged = sum(row.control and row.verdict in ("regressed", "improved") for row in rows)
    facts: dict[str, Any] = {
        "id": "2026-11-21T09-30-00Z-esrgan-compare",
        "created": "2026-11-21T09:30:00+00:00",
        "base": make_side("iree==3.12.0", "3.12.0"),
        "head": make_side("results/new", "3.13.0"),
        "within": False,
        "mode": "remeasured",
        "rule": "generations",
        "machine": MachineFacts(
            description=MACHINE,
            selfcheck=SELFCHECK,
            controls=sum(row.control for row in rows),
            controls_flagged=flagged,
        ),
        "rows": tuple(rows),
        "summary": {verdict: timed.count(verdict) for verdict in VERDICTS},
        "settings": {
            "floors": {"latency": 0.01, "instructions": 0.0005, "compile-time": 0.05},
            "alpha": 0.05,
            "confirm_alpha": 0.01,
            "confidence": 0.95,
            "row_budget_s": 15.0,
        },
        "command": ("harness", "compare", "iree==3.12.0", "results/new", "--controls", "2"),
    }
    return Comparison(**{**facts, **given})


CONFIRMED = "confirmed in 16 fresh generations"
WITHIN = "the interval lies within 1 %"


@pytest.fixture
def full_comparison() -> Comparison:
    """Every verdict, every kind of metric, gates of both kinds, and two A/A controls."""
    rows = [
        make_timed("rdb/stock@local-sync", 76.591, 1.1034, "regressed", p=2.3e-4, reason=CONFIRMED, change="more work"),
        make_timed("rdb/im2col@local-sync", 218.9, 1.041, "regressed", p=8e-4, reason=CONFIRMED, gate="passed"),
        make_timed("mm/stock@local-sync", 2.4, 0.911, "improved", p=1.1e-5, reason=CONFIRMED, change="less work"),
        make_timed(
            "mm/tiled@local-task",
            1.9,
            1.013,
            "inconclusive",
            p=0.031,
            seconds=15.0,
            reason="a difference is likely, but not known to be within or beyond 1 %; more generations would tell",
        ),
        make_timed("conv/stock@local-sync", 9.31, 1.001, "unchanged", reason=WITHIN),
        make_timed("conv/tiled@local-sync", 8.77, 0.998, "unchanged", reason=WITHIN, gate="passed"),
        make_row("conv/fused@local-sync", verdict="identical", reason="same module bytes, same runtime"),
        make_row("mm/inert@local-sync", verdict="identical", reason="same module bytes, same runtime"),
        make_row(
            "rdb/wide@local-sync",
            verdict="failed",
            reason="fails at compile: iree-compile exited with status 1",
            stderr=VERIFIER_SAYS,
        ),
        make_row("gpt2/stock@vulkan", verdict="missing", reason="the head has no such case"),
        make_row(
            "vit/stock@local-sync", verdict="new", reason="the base has no such case", head_value=12.5e6, ratio=None
        ),
        make_row(
            "rdb/stock@local-sync",
            "instructions",
            "regressed",
            base_value=1_204_332_118,
            head_value=1_331_900_412,
            ci_low=1.1058,
            ci_high=1.1061,
            generations=16,
            rounds=320,
        ),
        make_timed("rdb/stock@local-sync", 2310, 1.12, "regressed", metric="compile-time", p=0.0013, seconds=21.0),
        make_timed("mm/stock@local-sync", 420, 1.01, "unchanged", metric="compile-time", p=0.9),
        make_row(
            "rdb/stock@local-sync",
            "transient-memory",
            "regressed",
            base_value=16_742_912,
            head_value=19_796_992,
            reason="19,796,992 bytes, 3,054,080 more than 16,742,912; gate memory allows no increase",
            gate="violated",
        ),
        make_row("mm/stock@local-sync", "dispatches", "improved", base_value=14, head_value=10),
        make_row("mm/stock@local-sync", "copies", "regressed", base_value=0, head_value=3, ratio=None),
        make_row("conv/stock@local-sync", "module-size", base_value=812_345, head_value=812_345),
        make_timed("conv/fused@local-sync", 8.9, 1.0004, "unchanged", control=True, reason=WITHIN),
        make_timed("mm/inert@local-sync", 2.4, 0.9991, "unchanged", control=True, reason=WITHIN),
    ]
    return make_comparison(
        rows,
        means=(
            GeometricMean(kind="model", name="rdb", ratio=1.0717, rows=2),
            GeometricMean(kind="model", name="mm", ratio=0.9731, rows=3),
            GeometricMean(kind="device", name="local-sync", ratio=1.0051, rows=7),
            GeometricMean(kind="variant", name="stock", ratio=1.0025, rows=3),
        ),
        notes=("2 cases left out on both sides: skipped: no Vulkan device was found",),
    )


@pytest.fixture
def quiet_comparison() -> Comparison:
    """Nothing changed."""
    return make_comparison(
        [
            make_timed("mm/stock@local-sync", 2.4, 1.0007, "unchanged", reason=WITHIN),
            make_row("mm/inert@local-sync", verdict="identical", reason="same module bytes, same runtime"),
            make_row("mm/stock@local-sync", "dispatches", base_value=14, head_value=14),
        ],
        machine=MachineFacts(description=MACHINE),
    )


@pytest.fixture
def recorded_comparison() -> Comparison:
    """Numbers of two runs on two machines."""
    why = "by the interval of so few generations that was recorded; not confirmed"
    return make_comparison(
        [
            make_timed("mm/stock@local-sync", 2.4, 1.08, "regressed", p=0.004, generations=5, seconds=0.0, reason=why),
            make_timed("mm/tiled@local-sync", 1.9, 1.02, "inconclusive", p=0.2, generations=5, seconds=0.0, reason=why),
        ],
        mode="recorded",
        base=make_side("results/old", "3.12.0", machine="machine 77ab00c1d2e3, Ampere Altra, 80 cores, Ubuntu 24.04"),
        command=("harness", "compare", "results/old", "results/new", "--no-remeasure", "--across-hosts"),
    )


NASTY = "a|`b` <script>\n~~gone~~ \\| @octocat #1 [z](http://e.org) --> *x* _y_ </details> \x1b[31mred\x1b[0m\x07"


@pytest.fixture
def nasty_comparison() -> Comparison:
    """Texts made to break tables, and figures that are none."""
    nan, infinity = float("nan"), float("inf")
    rows = [
        make_timed(NASTY, 1.0, 1.5, "regressed", reason=NASTY, change=NASTY, repro=(NASTY, "```\n# </details>")),
        make_row("zero/base@cpu", verdict="regressed", base_value=0.0, head_value=2e6, ratio=None, p=0.0),
        make_row("no/number@cpu", verdict="improved", base_value=nan, head_value=nan, ratio=infinity, p=nan, floor=nan),
        make_row("bare/row@cpu", verdict="inconclusive", reason=NASTY, seconds=infinity, ci_low=-infinity),
        make_row("huge/ratio@cpu", verdict="regressed", base_value=1e-300, head_value=1e300, ratio=1e308),
        make_row(NASTY + "2", verdict="failed", reason=NASTY, stderr="```\n</details>\n\x1b[1mbold\x1b[0m\x07\n"),
        make_row(NASTY + "3", verdict="missing", reason=NASTY),
        make_row(NASTY, "unheard | of", "regressed", base_value=1.0, head_value=2.0, unit="furlongs"),
    ]
    return make_comparison(
        rows,
        base=make_side(NASTY, NASTY, suite=NASTY, machine=NASTY),
        head=make_side("-" + NASTY, "3.13.0", suite=NASTY),
        means=(GeometricMean(kind="model", name=NASTY, ratio=nan, rows=1),),
        notes=(NASTY, "line one\n> line two"),
        settings={"alpha": "five", "row_budget_s": nan, NASTY: [NASTY, infinity]},
        machine=MachineFacts(
            description=NASTY,
            selfcheck=SelfcheckFacts(
                flagged=0, rows=9, upper_bound=nan, detects=None, seconds=nan, when=NASTY, suite=NASTY
            ),
        ),
    )


RUN_URL = "https://github.com/org/repo/actions/runs/123"
COMMIT_URL = "https://github.com/org/repo/commit/"


@pytest.fixture
def links() -> Links:
    """All that there are."""
    return Links(
        run_url=RUN_URL,
        artifact_url=f"{RUN_URL}/artifacts/9",
        dashboard_url="https://org.github.io/repo/?suite=a&b=1",
        base_commit_url=f"{COMMIT_URL}9b05f1760b{'0' * 30}",
        head_commit_url=f"{COMMIT_URL}0a1b2c3d4e{'0' * 30}",
    )


@pytest.fixture
def images() -> Images:
    """A picture for both themes, and one that looks the same in both."""
    where = "https://org.github.io/repo/pr-1"
    return Images(
        entries=(
            Image(
                title="Forest",
                alt='Ratios: "rdb" is > 1',
                light_url=f"{where}/forest-light.png",
                dark_url=f"{where}/forest-dark.png",
            ),
            Image(title="Memory", alt="Latency against memory", light_url=f"{where}/memory (1).png"),
        )
    )
