"""Runs as `harness run` stores them, comparisons as `harness compare` finds them; each argument is a test's subject."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.metrics import METRICS
from harness.records.case import Case
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
from harness.records.run import (
    Build,
    Check,
    Failure,
    Header,
    IrCounts,
    Lost,
    ModelRecord,
    PluginEffect,
    Reference,
    Round,
    Run,
    Sizes,
    Statistics,
    ToolchainRecord,
    Turn,
)
from harness.report.run_report import Report, build_report
from harness.report.run_rows import Row as ReportRow
from tests import builders

# --- Runs ---

CPU = "--iree-hal-target-device=local"
VERIFIER_SAYS = """\
model.mlir:14:12: error: 'linalg.conv_2d_nchw_fchw' op failed to legalize
    %2 = linalg.conv_2d_nchw_fchw ins(%0, %1 : tensor<1x64x92x64xf32>, tensor<32x64x3x3xf32>)
         ^
"""


def make_case(model: str, variant: str, device: str = "local-sync", **facts: Any) -> Case:
    """A case of a suite whose baseline is `stock`."""
    case = builders.make_case(variant, model=model, device=device, uri=device, compile_flags=(CPU,))
    return replace(case, **{"toolchain": "3.13.0", **facts})


def make_header(cases: tuple[Case, ...], **facts: Any) -> Header:
    """The header of a run of suites/esrgan.toml on two cores."""
    model = ModelRecord(name="", mlir_sha256="ab" * 32, mlir_bytes=9, function="main", inputs=("4xf32 random seed 0",))
    defaults: dict[str, Any] = {
        "suite": "suites/esrgan.toml",
        "suite_name": "esrgan",
        "started": "2026-11-21T03:15:00+00:00",
        "harness_commit": "35217dcf00dfeedc0ffee+dirty",
        "toolchains": (ToolchainRecord(version="3.13.0", revision="e4a3b04d7a0c51b9", compiler_sha256="c0" * 32),),
        "models": tuple(replace(model, name=name) for name in dict.fromkeys(case.model for case in cases)),
        "cases": cases,
        "environment": {"machine": {"id": "3f2a91c04b7e"}, "cpu": {"model": "AMD EPYC 7B13", "usable_cores": 2}},
    }
    return builders.make_header("20261121-031500-esrgan", **{**defaults, **facts})


def compile_command(case: Case) -> tuple[str, ...]:
    """The command of iree-compile, with what the harness adds for itself."""
    own = [f"--iree-scheduling-dump-statistics-{name}" for name in ("format=json", "file=statistics.json")]
    polyglot = "--iree-vm-emit-polyglot-zip=true"
    return ("iree-compile", "model.mlir", "-o", "module.vmfb", *case.compile_flags, polyglot, *own)


def make_build(
    case: Case, *, code: str = "57", dispatches: int = 1, copies: int = 0, transient: int = 0, **facts: Any
) -> Build:
    """A build that succeeded; `code` stands for the module's bytes."""
    sizes = {"module_bytes": 9_000 * dispatches, "vm_bytes": 0, "constant_bytes": 0}
    counted = {"fills": 5, "awaits": 1, "submissions": 1, "constant_bytes": 0, "variable_bytes": 0}
    build = Build(
        case=case.name,
        command=compile_command(case),
        cache_key=f"key of {case.name}",
        compile_ns=10**9,
        module_sha256=f"{code:0<64}",
        sizes=Sizes(**sizes, dispatch_bytes={f"d{index}.so": 9_000 for index in range(dispatches)}),
        statistics=Statistics(
            dispatches=dispatches, copies=copies, executables=dispatches, transient_bytes=transient, **counted
        ),
        outputs=1,
    )
    return replace(build, **facts)


def make_failed_build(case: Case, **failure: Any) -> Build:
    """A build that the compiler refused."""
    failed = Failure(**{"stage": "compile", "message": "no", **failure})
    return Build(case=case.name, command=compile_command(case), cache_key="f", compile_ns=10**9, failure=failed)


def make_check(case: Case, against: str, **facts: Any) -> Check:
    """A comparison of a case's outputs, which agree unless a failure is given."""
    tolerances: dict[str, Any] = {"relative_tolerance": 1e-4, "absolute_tolerance": 1e-5}
    return Check(case=case.name, against=against, command=("iree-run-module",), **{**tolerances, **facts})


def make_reference(case: Case, *real_time_ns: float, **facts: Any) -> Reference:
    """What iree-benchmark-module says of a case."""
    return Reference(case=case.name, command=("iree-benchmark-module",), real_time_ns=real_time_ns, **facts)


def jitter(step: int) -> float:
    """Between -1 and 1, without a pattern; plain arithmetic, so that it is the same to the last bit everywhere."""
    return step * 37 % 101 / 50 - 1


def make_rounds(
    group: str,
    base_ns: Mapping[str, float],
    *,
    generations: int = 5,
    rounds: int = 8,
    noisy: str = "",
    instructions: bool = True,
) -> Iterator[Round]:
    """Rounds on a machine whose speed wanders by 3 %, with 0.4 % of noise of each case's own, and 3 % of one's."""
    for generation in range(generations):
        for number in range(rounds):
            wander = 1 + 0.03 * jitter(11 * number + 5 * generation)
            turns = []
            for place, (case, ns) in enumerate(base_ns.items()):
                own = jitter(7 * number + 31 * place + generation) + jitter(17 * generation + 23 * place)
                wall_ns = int(ns * wander * (1 + (0.015 if case == noisy else 0.002) * own))
                counters = {"instructions": int(ns * 3.1) + 7 * number} if instructions else {}
                turns.append(Turn(case=case, calls=1, wall_ns=wall_ns, cpu_ns=wall_ns, counters=counters))
            yield Round(
                group=group,
                generation=generation,
                round=number,
                started_unix_ns=1_795_000_000_000_000_000 + number,
                turns=tuple(turns if number % 2 else reversed(turns)),
            )


def row_of(source: Run | Report, variant: str, **facts: str) -> ReportRow:
    """The first row of a variant with these facts."""
    rows = (build_report(source) if isinstance(source, Run) else source).rows()
    return next(row for row in rows if row.variant == variant and facts.items() <= vars(row).items())


def with_turns(run: Run, change: Callable[[Turn, int], Turn | None]) -> Run:
    """The run with other turns; the change gets a turn and its generation, and gives none where it was not taken."""
    rounds = []
    for known in run.rounds:
        turns = (change(turn, known.generation) for turn in known.turns)
        rounds.append(replace(known, turns=tuple(turn for turn in turns if turn is not None)))
    return replace(run, rounds=tuple(rounds))


def without(run: Run, case: str) -> Run:
    """The run as if a case had never been measured."""
    return with_turns(run, lambda turn, _: None if turn.case == case else turn)


def with_cases(run: Run, *variants: str, **facts: Any) -> Run:
    """The run with other facts of some variants, or of all."""
    cases = (replace(case, **facts) if case.variant in variants or not variants else case for case in run.header.cases)
    return replace(run, header=replace(run.header, cases=tuple(cases)))


def make_small_run(*, generations: int = 5, finished: bool = True) -> Run:
    """Three variants of one model: the baseline, one that is faster, and one whose flag changes nothing."""
    stock = make_case("mm", "stock")
    fast = make_case("mm", "fast", compile_flags=(CPU, "--iree-opt-level=O3"))
    inert = make_case("mm", "inert", compile_flags=(CPU, "--iree-opt-data-tiling"))
    times = {stock.name: 4.7e6, fast.name: 4.2e6}
    return Run(
        header=make_header((stock, fast, inert)),
        builds=(make_build(stock), make_build(fast, code="fa"), make_build(inert)),
        rounds=tuple(make_rounds(stock.group, times, generations=generations, rounds=10, instructions=False)),
        finished=finished,
    )


def make_refused_run() -> Run:
    """The small run with a baseline whose output is wrong, a faster variant behind `fast`, and a peer."""
    stock, fast = (make_case("mm", variant) for variant in ("stock", "fast"))
    inert, quick = (make_case("mm", variant) for variant in ("inert", "quick"))
    peer = make_case("mm", "onnxruntime", peer="onnxruntime", toolchain="", compile_flags=())
    differs = Failure(stage="verify", message="its output 0 differs", mismatch=True)
    times = {fast.name: 4e6, quick.name: 2e6, peer.name: 1e6}
    return Run(
        header=make_header((stock, fast, inert, quick, peer)),
        builds=(
            make_build(stock),
            *(make_build(case, code="fa") for case in (fast, inert)),
            make_build(quick, code="c"),
        ),
        checks=(make_check(stock, "the reference", failure=differs),),
        rounds=tuple(make_rounds(stock.group, times, rounds=10, instructions=False)),
        finished=True,
    )


def make_unfinished_run() -> Run:
    """Killed after the builds of a first model and before its first round; of the second, nothing is there."""
    whole = make_small_run(finished=False)
    more = (*whole.header.cases, make_case("later", "stock"), make_case("later", "fast"))
    return Run(header=make_header(more), builds=whole.builds, rounds=whole.rounds[:14])


# What a line does under a release where it is not measured.
FAILS, WRONG, SKIPPED = "fails", "wrong", "skipped"


def make_release_run(lines: Mapping[str, Sequence[float | str]], *releases: str, generations: int = 5) -> Run:
    """Models of one variant over releases: milliseconds under each, or what happens there instead."""
    cases, builds, checks, rounds = list[Case](), list[Build](), list[Check](), list[Round]()
    for model, fates in lines.items():
        times: dict[str, float] = {}
        for release, fate in zip(releases, fates, strict=True):
            case = make_case(model, "stock", name=f"{model}/stock@local-sync:{release}", toolchain=release)
            case = replace(case, skip="it lacks the flag" if fate == SKIPPED else None, baseline=release == releases[0])
            cases.append(case)
            if fate == FAILS:
                builds.append(make_failed_build(case, message="it exited with 1"))
            elif fate != SKIPPED:
                builds.append(make_build(case, code=f"{len(builds) % 256:02x}"))
            if fate == WRONG:
                failure = Failure(stage="verify", message="its output 0 differs", mismatch=True)
                checks.append(make_check(case, "the reference", failure=failure))
            elif not isinstance(fate, str):
                times[case.name] = fate * 1e6
        rounds += make_rounds(cases[-1].group, times, generations=generations, rounds=4, instructions=False)
    toolchains = tuple(
        ToolchainRecord(version=release, revision="e4a3b04d7a", compiler_sha256="c0" * 32) for release in releases
    )
    header = make_header(tuple(cases), toolchains=toolchains)
    return Run(header=header, builds=tuple(builds), checks=tuple(checks), rounds=tuple(rounds), finished=True)


VARIANTS: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("stock", "channels-last", "im2col", "data-tiling", "fuse-padding", "aggressive-im2col")},
    **{name: {} for name in ("wide-vectors", "pixel-shuffle", "ukernels", "loop-peeling", "forgotten")},
    "shared-concat": {"plugins": ("share-concats",)},
    "strided": {"expected_failure": "failed to legalize"},
    "onnx-if": {"expected_failure": "onnx.If"},
}


def make_full_run() -> Run:
    """Two models, two devices, and every status and kind a row can have."""
    block = {variant: make_case("rdb", variant, **facts) for variant, facts in VARIANTS.items()}
    vulkan = make_case("rdb", "stock", "vulkan", skip="no Vulkan device: libvulkan.so.1 is not installed")
    two_threads = {"run_flags": ("--task_topology_max_group_count=2",)}
    matmul = make_case("matmul-512", "stock", "local-task", **two_threads)
    tiled = make_case("matmul-512", "data-tiling", "local-task", **two_threads)

    codes = {"stock": "57", "channels-last": "1a", "im2col": "12", "data-tiling": "57", "fuse-padding": "f0"}
    codes |= {"aggressive-im2col": "12", "pixel-shuffle": "b5", "ukernels": "c4", "loop-peeling": "9e"}
    message = "iree-compile exited with status 1: model.mlir:14:12: error: op failed to legalize"
    legalize = {"message": message, "stderr": VERIFIER_SAYS}
    shared = PluginEffect(name="share-concats", changed=True, matched=5, wall_ns=1_030_000_000)
    wrong = Failure(stage="verify", message="its output 0 differs in 302,481 of 357,120 values", mismatch=True)
    limit = "iree-compile ran past its limit of 900 s; give it more with --compile-timeout"
    slow = Failure(stage="reference", message="iree-benchmark-module ran for longer than 60 s")
    died = "the worker ended by signal 11 while loading the module"
    crash = Failure(stage="measure", message=died, stderr="iree/runtime: \x1b[31mFatal Python error\x1b[0m\n")
    times = {"stock": 220e6, "channels-last": 132e6, "im2col": 218.9e6, "fuse-padding": 231e6}
    times |= {"shared-concat": 217e6, "onnx-if": 220.1e6, "loop-peeling": 221e6}
    stock, last, noisy = block["stock"], block["channels-last"], block["loop-peeling"].name
    latencies = {block[variant].name: ns for variant, ns in times.items()}
    return Run(
        header=make_header((*block.values(), vulkan, matmul, tiled)),
        builds=(
            *(make_build(block[variant], code=code, transient=2**20) for variant, code in codes.items()),
            make_build(block["shared-concat"], code="5c", rewritten=True, effects=(shared,)),
            make_build(block["onnx-if"], code="0f", warnings=("data tiling has no effect on linalg.generic",)),
            make_failed_build(block["wide-vectors"], **legalize),
            make_failed_build(block["strided"], **legalize),
            make_build(matmul, code="33"),
            make_build(tiled, code="37", dispatches=4, transient=3_145_728),
        ),
        ir=(
            IrCounts(case=stock.name, counts={"input/linalg.*": 34, "flow/flow.tensor.update": 13}),
            IrCounts(case=block["fuse-padding"].name, failure=Failure(stage="ir", message=limit)),
        ),
        checks=(
            make_check(last, stock.name, max_absolute=3e-6, max_relative=1e-6),
            make_check(block["pixel-shuffle"], "ONNX Runtime", failure=wrong),
            make_check(block["ukernels"], stock.name, max_absolute=0.0, max_relative=0.0),
        ),
        references=(
            make_reference(stock, 222e6, 223e6, 240e6),
            make_reference(last, 171e6, 172e6, 168e6),
            make_reference(block["im2col"], failure=slow),
        ),
        rounds=(
            *make_rounds(stock.group, latencies, noisy=noisy),
            *make_rounds(matmul.group, {matmul.name: 2.4e6, tiled.name: 1.9e6}, rounds=40, instructions=False),
        ),
        lost=(Lost(case=block["ukernels"].name, generation=2, failure=crash),),
        finished=True,
    )


# --- Comparisons ---

NASTY = "a|`b` <script>\n~~gone~~ \\| @octocat #1 [z](http://e.org) --> *x* _y_ </details> \x1b[31mred\x1b[0m\x07"

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
RUN_URL = "https://github.com/org/repo/actions/runs/123"


def make_row(case: str, metric: str = "latency", verdict: Verdict = "unchanged", **facts: Any) -> Row:
    """A row of a case named `model/variant@device`; its ratio is that of its values unless one is given."""
    model, _, rest = case.partition("/")
    variant, _, device = rest.partition("@")
    defaults: dict[str, Any] = {"model": model, "variant": variant, "device": device}
    if metric in METRICS:
        defaults |= {"unit": METRICS[metric].unit, "floor": METRICS[metric].floor}
    base, head = facts.get("base_value"), facts.get("head_value")
    if base and head is not None:
        defaults["ratio"] = round(head / base, 6)
    return Row(case=case, metric=metric, verdict=verdict, **{**defaults, **facts})


def make_timed(case: str, base_ms: float, ratio: float, verdict: Verdict, **facts: Any) -> Row:
    """A latency row that was measured, with an interval of half a percent either way."""
    defaults: dict[str, Any] = {
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
    return make_row(case, facts.pop("metric", "latency"), verdict, **{**defaults, **facts})


def make_side(label: str, version: str, **facts: Any) -> SideFacts:
    """One side of a comparison of two releases."""
    side = SideFacts(
        label=label,
        run=f"2026-11-21T08-00-00Z-esrgan-{version}",
        suite="suites/esrgan.toml",
        started="2026-11-21T08:00:00+00:00",
        toolchains=(f"{version} (f17ed20a11)",),
        machine=MACHINE,
    )
    return replace(side, **facts)


def make_comparison(rows: Sequence[Row], **facts: Any) -> Comparison:
    """A comparison of two releases, measured side by side on a machine that was checked."""
    timed = [row.verdict for row in rows if row.metric == "latency" and not row.control]
    comparison = Comparison(
        id="2026-11-21T09-30-00Z-esrgan-compare",
        created="2026-11-21T09:30:00+00:00",
        base=make_side("iree==3.12.0", "3.12.0"),
        head=make_side("results/new", "3.13.0"),
        within=False,
        mode="remeasured",
        machine=MachineFacts(description=MACHINE, selfcheck=SELFCHECK),
        rows=tuple(rows),
        summary={verdict: timed.count(verdict) for verdict in VERDICTS},
        settings={"alpha": 0.05, "confirm_alpha": 0.01, "confidence": 0.95, "row_budget_s": 15.0},
        command=("harness", "compare", "iree==3.12.0", "results/new", "--controls", "2"),
    )
    return replace(comparison, **facts)


CONFIRMED = {"reason": "confirmed in 16 fresh generations"}
WITHIN = {"reason": "the interval lies within 1 %"}
ALIKE: dict[str, Any] = {"verdict": "identical", "reason": "same module bytes, same runtime"}


def make_full_comparison() -> Comparison:
    """Every verdict, every kind of metric, gates of both kinds, and two A/A controls."""
    unsure = "a difference is likely, but not known to be within or beyond 1 %; more generations would tell"
    failed = "fails at compile: iree-compile exited with status 1"
    gate = "19,796,992 bytes, 3,054,080 more than 16,742,912; gate memory allows no increase"
    instructions = {"base_value": 1_204_332_118, "head_value": 1_331_900_412, "ci_low": 1.1058, "ci_high": 1.1061}
    memory = {"base_value": 16_742_912, "head_value": 19_796_992, "reason": gate, "gate": "violated"}
    size: dict[str, Any] = {"base_value": 812_345, "head_value": 812_345}
    rows = [
        make_timed("rdb/stock@local-sync", 76.591, 1.1034, "regressed", p=2.3e-4, change="more work", **CONFIRMED),
        make_timed("rdb/im2col@local-sync", 218.9, 1.041, "regressed", p=8e-4, gate="passed", **CONFIRMED),
        make_timed("mm/stock@local-sync", 2.4, 0.911, "improved", p=1.1e-5, change="less work", **CONFIRMED),
        make_timed("mm/tiled@local-task", 1.9, 1.013, "inconclusive", p=0.031, seconds=15.0, reason=unsure),
        make_timed("conv/stock@local-sync", 9.31, 1.001, "unchanged", **WITHIN),
        make_timed("conv/tiled@local-sync", 8.77, 0.998, "unchanged", gate="passed", **WITHIN),
        make_row("conv/fused@local-sync", **ALIKE),
        make_row("mm/inert@local-sync", **ALIKE),
        make_row("rdb/folded@local-sync", verdict="outputs differ", reason="head's output 0 differs in 4 of 6 values"),
        make_row("rdb/wide@local-sync", verdict="failed", reason=failed, stderr=VERIFIER_SAYS),
        make_row("gpt2/stock@vulkan", verdict="missing", reason="the head has no such case"),
        make_row("vit/stock@local-sync", verdict="new", reason="the base has no such case", head_value=12.5e6),
        make_row("rdb/stock@local-sync", "instructions", "regressed", generations=16, rounds=320, **instructions),
        make_timed("rdb/stock@local-sync", 2310, 1.12, "regressed", metric="compile-time", p=0.0013, seconds=21.0),
        make_timed("mm/stock@local-sync", 420, 1.01, "unchanged", metric="compile-time", p=0.9),
        make_row("rdb/stock@local-sync", "transient-memory", "regressed", **memory),
        make_row("mm/stock@local-sync", "dispatches", "improved", base_value=14, head_value=10),
        make_row("mm/stock@local-sync", "copies", "regressed", base_value=0, head_value=3, ratio=None),
        make_row("conv/stock@local-sync", "module-size", **size),
        make_timed("conv/fused@local-sync", 8.9, 1.0004, "unchanged", control=True, **WITHIN),
        make_timed("mm/inert@local-sync", 2.4, 0.9991, "unchanged", control=True, **WITHIN),
    ]
    return make_comparison(
        rows,
        means=(GeometricMean(kind="model", name="rdb", ratio=1.0717, rows=2),),
        notes=("2 cases left out on both sides: skipped: no Vulkan device was found",),
    )


def make_nasty_comparison(text: str = NASTY) -> Comparison:
    """The same text in all places where texts can come from outside, and figures that nobody expects."""
    repro, said = (text, f"```\n# </details>{text}"), f"```\n</details>\n{text}\n{text}x"
    nasty: dict[str, Any] = {"reason": text, "change": text}
    rows = [
        replace(row, case=f"{text}{place}", repro=row.repro and repro, stderr=row.stderr and said, **nasty)
        for place, row in enumerate(make_full_comparison().rows)
        if row.metric not in METRICS or row.metric in ("latency", "compile-time")
    ]
    rows += [
        make_row(text, f"input/{text}", "regressed", base_value=1.0, head_value=2.0, unit=text, reason=text),
        make_row("zero/base@cpu", verdict="regressed", base_value=0.0, head_value=2e6, ratio=None, p=0.0),
        make_row("huge/ratio@cpu", verdict="improved", base_value=1e-300, head_value=1e300, ratio=1e308),
    ]
    checked = SelfcheckFacts(flagged=0, rows=9, upper_bound=0.1, detects=None, seconds=1e9, when=text, suite=text)
    side = make_side(text, text, suite=text, run=text, started=text, machine=text)
    return make_comparison(
        rows,
        id=text,
        created=text,
        base=side,
        head=side,
        means=(GeometricMean(kind="model", name=text, ratio=1e300, rows=1),),
        notes=(text,) * 50,
        settings={"alpha": "five", "row_budget_s": -1, text: [text, 2]},
        machine=MachineFacts(description=text, selfcheck=checked),
        command=("harness", text),
    )
