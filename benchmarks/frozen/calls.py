"""Every call that is recorded: each command in each format, and what is said of wrong input."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Edit = Callable[[Path], None]

BASE = "results/20261122-034124-tiny"
HEAD = "results/20261122-034145-tiny"
BOTH = "results/20261122-034202-tiny"
PUBLISHED = "published/esrgan"
SIDES = "results/20261122-034213-tiny-compare"
WITHIN = "results/20261122-034219-tiny-compare"
RECORDED = "results/20261122-034224-tiny-compare"
NIGHT = "history/20240106-020000-made"

_FORMATS = ("terminal", "markdown", "json", "csv")
_COMMANDS = (
    "ablate",
    "compare",
    "dashboard",
    "doctor",
    "export",
    "github",
    "github post",
    "github issue",
    "history",
    "ir",
    "list",
    "plot",
    "report",
    "results",
    "results merge",
    "results verify",
    "run",
    "schema",
    "selfcheck",
)


@dataclass(frozen=True)
class Call:
    """One command line, run in the folder that holds the inputs.

    Attributes:
        name: Of the file that keeps what it printed.
        edits: What is done to the inputs first, in order.
        before: Commands that run first; what they print is not kept.
        compiles: Whether tools of the compiler run; such calls share a cache and run in this order.
        prints: How much of stdout is kept: `all`; `stable`, which hides values that vary; or `structure`, which keeps
            the paths of JSON's keys alone.
    """

    name: str
    arguments: Sequence[str]
    edits: Sequence[Edit] = ()
    before: Sequence[Sequence[str]] = ()
    compiles: bool = False
    prints: Literal["all", "stable", "structure"] = "all"
    environment: Mapping[str, str] = field(default_factory=dict)


def all_calls() -> list[Call]:
    """All calls, in the order in which they are recorded."""
    calls = [
        *_helps(),
        *_reports(),
        *_github(),
        *_plots(),
        *_histories(),
        *_results(),
        *_comparisons(),
        *_compiling(),
        *_wrong_suites(),
        *_wrong_calls(),
        *_wrong_folders(),
    ]
    assert len({call.name for call in calls}) == len(calls), "two calls have one name"
    return calls


def _helps() -> Iterator[Call]:
    yield Call("help", ["--help"])
    yield Call("help-none", [])
    for command in _COMMANDS:
        yield Call(f"help-{command.replace(' ', '-')}", [*command.split(), "--help"])
    for kind in ("suite", "list", "flagset"):
        yield Call(f"schema-{kind}", ["schema", kind])


def _reports() -> Iterator[Call]:
    shown = {"base": BASE, "head": HEAD, "both": BOTH, "published": PUBLISHED, "night": NIGHT}
    compared = {"sides": SIDES, "within": WITHIN, "recorded": RECORDED}
    for name, folder in (shown | compared).items():
        for output in (*_FORMATS, "github"):
            yield Call(f"report-{name}-{output}", ["report", folder, "--format", output])
        yield Call(f"report-{name}-full", ["report", folder, "--format", "markdown", "--full"])
    yield Call("report-narrow", ["report", HEAD], environment={"COLUMNS": "70"})
    yield Call("report-wide", ["report", PUBLISHED], environment={"COLUMNS": "220"})
    yield Call("report-comparison-narrow", ["report", SIDES], environment={"COLUMNS": "70"})
    yield Call("report-out", ["report", HEAD, "--format", "csv", "--out", "report.csv"])
    yield Call("report-unfinished", ["report", HEAD], [_remove(f"{HEAD}/finished.json"), _cut(f"{HEAD}/rounds.jsonl")])
    yield Call("report-without-turns", ["report", HEAD], [_remove(f"{HEAD}/rounds.jsonl")])
    files = ["--full-out", "full.md", "--step-summary", "summary.md", "--out", "comment.md"]
    for name, folder in (("sides", SIDES), ("head", HEAD)):
        yield Call(f"report-github-links-{name}", ["report", folder, "--format", "github", *files])
    hostile = [_replace(f"{HEAD}/run.json", "Small enough to store", "<b>|`@everyone`\\u001b[31m</b>")]
    for output in (*_FORMATS, "github"):
        yield Call(f"report-hostile-{output}", ["report", HEAD, "--format", output], hostile)


def _github() -> Iterator[Call]:
    where = ["--repo", "owner/name", "--dry-run"]
    for name, folder in (("sides", SIDES), ("recorded", RECORDED), ("within", WITHIN), ("run", HEAD)):
        yield Call(f"github-post-{name}", ["github", "post", folder, "--pr", "7", *where])
    nowhere = ["--api-url", "http://127.0.0.1:9", "--patience", "0"]
    pictures = ["--images-branch", "pictures", "--dashboard-url", "https://example.org/pages"]
    yield Call("github-post-pictures", ["github", "post", SIDES, "--pr", "7", *where, *pictures])
    yield Call("github-post-json", ["github", "post", f"{SIDES}/comparison.json", "--pr", "7", *where])
    yield Call("github-post-event", ["github", "post", SIDES, *where, "--event", "event.json", *nowhere], [_event])
    yield Call("github-post-no-pull-request", ["github", "post", SIDES, *where])
    yield Call("github-post-no-token", ["github", "post", SIDES, "--pr", "7", "--repo", "owner/name"])
    yield Call("github-post-bad-repo", ["github", "post", SIDES, "--pr", "7", "--repo", "name", "--dry-run"])
    yield Call("github-post-nothing-there", ["github", "post", "results/nothing", "--pr", "7", *where])
    yield Call("github-issue", ["github", "issue", f"{SIDES}/report.md", "--title", "Slower", *where])
    yield Call("github-issue-no-file", ["github", "issue", "nothing.md", "--title", "Slower", *where])


def _plots() -> Iterator[Call]:
    for name, folder in (("run", HEAD), ("sides", SIDES), ("history", "history")):
        series = ["--series", "*/inline@cpu"] if name == "history" else []
        yield Call(f"plot-usual-{name}", ["plot", folder, "--out", "picture.svg", *series])
    for kind in ("forest", "variants", "memory", "roofline"):
        yield Call(f"plot-{kind}", ["plot", BASE, "--kind", kind, "--theme", "dark", "--out", "picture.svg"])
    some = ["--filter", "rdb/*@cpu", "--top", "3"]
    yield Call("plot-some", ["plot", PUBLISHED, "--kind", "variants", "--out", "picture.svg", *some])
    timeline = ["plot", "history", "--kind", "timeline", "--out", "picture.svg"]
    yield Call("plot-timeline", [*timeline, "--series", "model-0000/inline@cpu latency"])
    yield Call("plot-timeline-ambiguous", [*timeline, "--series", "*"])
    yield Call("plot-bad-ending", ["plot", HEAD, "--out", "picture.gif"])
    yield Call("plot-nothing-matches", ["plot", HEAD, "--filter", "nothing*", "--out", "picture.svg"])
    yield Call("plot-timeline-of-a-run", ["plot", HEAD, "--kind", "timeline", "--out", "picture.svg"])


def _histories() -> Iterator[Call]:
    failing = "SELECT run, \"case\", status, message FROM cases WHERE status = 'failed' ORDER BY ALL"
    counts = "SELECT metric, count(*) AS points, round(avg(value), 6) AS mean FROM points GROUP BY metric ORDER BY ALL"
    asked: dict[str, list[str]] = {
        "plain": [],
        "changes": ["--changes"],
        "changes-metric": ["--changes", "--metric", "dispatches", "--last", "5"],
        "changes-last": ["--changes", "--last", "3"],
        "series": ["--series", "model-0000/inline@cpu latency"],
        "series-case": ["--series", "model-0000/inline@cpu"],
        "sql": ["--sql", counts],
        "sql-failing": ["--sql", failing],
        "sql-runs": ["--sql", "SELECT * FROM runs ORDER BY run"],
        "columns": ["--columns"],
    }
    often = ("plain", "changes", "series", "sql", "columns")
    for name, options in asked.items():
        for output in _FORMATS if name in often else ("csv",):
            yield Call(f"history-{name}-{output}", ["history", "history", *options, "--format", output])
    for output in _FORMATS:
        yield Call(f"history-tiny-{output}", ["history", "--format", output])
    for table in ("cases", "comparisons", "points", "series", "turns"):
        sql = f"FROM {table} ORDER BY ALL"
        yield Call(f"history-tiny-{table}", ["history", "--sql", sql, "--format", "csv"])
    yield Call("history-tiny-product", ["history", "--series", "matmul/*"])
    yield Call("history-out", ["history", "history", "--changes", "--format", "markdown", "--out", "changes.md"])
    yield Call("history-bad-sql", ["history", "history", "--sql", "SELECT nothing FROM runs"])
    yield Call("history-bad-metric", ["history", "history", "--changes", "--metric", "speed"])
    yield Call("history-no-series", ["history", "history", "--series", "nothing*"])
    yield Call("history-two-questions", ["history", "history", "--changes", "--columns"])
    yield Call("history-no-folder", ["history", "nothing"])
    yield Call("history-empty", ["history", "suites"])
    yield Call("history-damaged", ["history", "history"], [_cut(f"{NIGHT}/run.json")])
    for name, folder in (("made", "history"), ("tiny", "results")):
        yield Call(f"dashboard-{name}", ["dashboard", folder, "--out", "pages", "--title", "Nights"])
    yield Call("dashboard-not-ours", ["dashboard", "history", "--out", "suites"])
    yield Call("dashboard-no-folder", ["dashboard", "nothing", "--out", "pages"])


def _results() -> Iterator[Call]:
    damaged = [_replace(f"{NIGHT}/builds.jsonl", '"outputs":1', '"outputs":2'), _cut(f"{BASE}/run.json")]
    for output in ("terminal", "json"):
        chosen = ["--format", output]
        yield Call(f"results-merge-{output}", ["results", "merge", "history", HEAD, "--into", "all", *chosen])
        yield Call(
            f"results-merge-damaged-{output}", ["results", "merge", "history", BASE, "--into", "all", *chosen], damaged
        )
        yield Call(f"results-verify-{output}", ["results", "verify", "results", *chosen])
        yield Call(f"results-verify-damaged-{output}", ["results", "verify", "history", *chosen], damaged)
    yield Call("results-verify-no-folder", ["results", "verify", "nothing"])
    yield Call("results-merge-no-folder", ["results", "merge", "nothing", "--into", "all"])


def _comparisons() -> Iterator[Call]:
    recorded = ["compare", BASE, HEAD, "--no-remeasure"]
    within = ["compare", "--within", HEAD, "--no-remeasure"]
    for output in _FORMATS:
        yield Call(f"compare-recorded-{output}", [*recorded, "--format", output])
        yield Call(f"compare-within-{output}", [*within, "--format", output])
    published = ["compare", "--within", PUBLISHED, "--no-remeasure"]
    for output in ("terminal", "json"):
        yield Call(f"compare-within-published-{output}", [*published, "--format", output])
    yield Call("compare-within-both", ["compare", "--within", BOTH, "--no-remeasure"])
    yield Call("compare-full", [*recorded, "--format", "markdown", "--full", "--out", "full.md"])
    yield Call("compare-floor", [*within, "--floor", "0.2"])
    yield Call("compare-strict", [*recorded, "--strict"])
    yield Call("compare-filter", [*recorded, "--filter", "network/*"])
    yield Call("compare-by-name", [*recorded, "--by-name"])
    yield Call("compare-across-hosts", [*recorded, "--across-hosts"], [_on_another_machine(BASE)])
    yield Call("compare-of-another-host", recorded, [_on_another_machine(BASE)])
    nights = ["compare", NIGHT, "history/20240113-020000-made", "--no-remeasure"]
    yield Call("compare-nights", nights)


def _compiling() -> Iterator[Call]:
    """Calls that run the compiler or look for its flags; they share one cache."""

    def call(name: str, *arguments: str, edits: Sequence[Edit] = (), prints: Any = "all") -> Call:
        return Call(name, arguments, edits, compiles=True, prints=prints)

    for output in ("terminal", "json"):
        chosen = ("--format", output)
        yield call(f"list-{output}", "list", "tiny.toml", *chosen)
        yield call(f"list-flags-{output}", "list", "tiny.toml", "--flags", *chosen)
    yield call("list-filter", "list", "tiny.toml", "--filter", "network/*", "--tag", "product")
    yield call("list-tag", "list", "tiny.toml", "--tag", "product")
    yield call("list-esrgan", "list", "suites/esrgan.toml")
    yield call("list-nightly", "list", "suites/nightly.toml", prints="all")
    yield call("doctor-json", "doctor", "--format", "json", prints="structure")
    unmeasured = ("run", "tiny.toml", "--no-measure", "--results", "made")
    yield call("run-unmeasured-json", *unmeasured, "--format", "json", prints="stable")
    yield call("run-unmeasured-again-json", *unmeasured, "--format", "json", "--jobs", "1", prints="stable")
    few = ("--filter", "matmul/stock@cpu", "--filter", "matmul/onnxruntime@cpu", "--filter", "matmul/inert@cpu")
    measured = ("run", "tiny.toml", "--results", "made", "--budget", "0.3", "--format", "json", *few)
    yield call("run-measured-json", *measured, prints="structure")
    unfinished = [_remove(f"{HEAD}/{name}") for name in ("finished.json", "rounds.jsonl", "report.md")]
    yield call("run-resume-finished", "run", "--resume", HEAD)
    yield call("run-resume-json", "run", "--resume", HEAD, "--format", "json", edits=unfinished, prints="structure")
    checked = ("--rows", "2", "--row-budget", "0.3", "--filter", "matmul/stock@cpu", "--results", "made")
    yield call("selfcheck-json", "selfcheck", "tiny.toml", *checked, "--format", "json", prints="structure")
    ablated = ("--plugin", "ingress-canonicalize", "--model", "matmul", "--budget", "0.3", "--results", "made")
    yield call("ablate-json", "ablate", "tiny.toml", *ablated, "--format", "json", prints="structure")
    for output in ("terminal", "json", "mlir"):
        phase = ("--phase", "flow") if output == "mlir" else ()
        yield call(f"ir-{output}", "ir", "tiny.toml", "network/stock@cpu", *phase, "--format", output)
    yield call("ir-ops", "ir", "tiny.toml", "network/stock@cpu", "--ops", "linalg.*", "--phase", "input")
    yield call("ir-out", "ir", "tiny.toml", "network/stock@cpu", "--format", "json", "--out", "made.json")
    yield call("ir-bad-case", "ir", "tiny.toml", "network/stok@cpu")
    yield call("ir-bad-phase", "ir", "tiny.toml", "network/stock@cpu", "--phase", "flows")
    yield call("export", "export", "tiny.toml", "matmul")
    yield call("export-variant", "export", "tiny.toml", "network", "--variant", "nhwc", "--out", "made")
    yield call("export-bad-model", "export", "tiny.toml", "matmull")
    yield call("export-bad-variant", "export", "tiny.toml", "network", "--variant", "nhcw")
    yield call("export-there-already", "export", "tiny.toml", "matmul", "--out", "suites")
    yield call("compare-modules-gone", "compare", "--within", PUBLISHED)


def _wrong_suites() -> Iterator[Call]:
    """Changes of tiny.toml that are refused."""
    changes = {
        "key": ("budget_s = 4", "budget_seconds = 4"),
        "type": ("generations = 3", 'generations = "3"'),
        "baseline": ('baseline = "stock"', 'baseline = "stok"'),
        "builder": ('builder = "matmul"', 'builder = "matmull"'),
        "param": ("k = 64", "kk = 64"),
        "flagset": ('flagsets = ["inert"]', 'flagsets = ["inertt"]'),
        "plugin": ('plugins = ["channels-last"]', 'plugins = ["channel-last"]'),
        "flag": ('flagsets = ["inert"]', 'flags = ["--iree-opt-data-tilin"]'),
        "cancelling": ('flagsets = ["inert"]', 'flags = ["--iree-opt-data-tiling", "--iree-global-opt-data-tiling"]'),
        "exclude": ("matmul/nhwc@*", "matmul/nhwc@gpu"),
        "peer": ('peers = ["onnxruntime"]', 'peers = ["onnx"]'),
        "onnx-file": ("network.onnx", "nothing.onnx"),
        "flagset-file": ("flags.toml", "nothing.toml"),
        "expect": ('expect = "mismatch"', 'expect = "wrong"'),
        "syntax": ("[models.matmul]", "[models.matmul"),
        "twice": ("[variants.inert]", "[variants.stock]"),
        "device-uri": ('uri = "local-sync"', 'uri = "local-snyc"'),
        "phase": ("flow = [", "flows = ["),
        "section": ("[measure]", "[measures]"),
        "no-input": ("inputs = [{ shape = [64] }]", "inputs = [{ shape = [0] }]"),
    }
    for name, (old, new) in changes.items():
        yield Call(f"wrong-suite-{name}", ["list", "tiny.toml"], [_replace("tiny.toml", old, new)], compiles=True)
    yield Call("wrong-suite-run", ["run", "tiny.toml"], [_replace("tiny.toml", "budget_s", "budget")], compiles=True)


def _wrong_calls() -> Iterator[Call]:
    wrong: dict[str, list[str]] = {
        "command": ["repport", HEAD],
        "option": ["report", HEAD, "--formatt", "json"],
        "format": ["report", HEAD, "--format", "html"],
        "no-suite": ["run"],
        "suite-not-there": ["run", "nothing.toml"],
        "list-not-there": ["list", "nothing.toml"],
        "filter": ["run", "tiny.toml", "--filter", "nothing*"],
        "tag": ["run", "tiny.toml", "--tag", "nothing"],
        "budget": ["run", "tiny.toml", "--budget", "-1"],
        "generations": ["run", "tiny.toml", "--generations", "0"],
        "jobs": ["run", "tiny.toml", "--jobs", "many"],
        "toolchain": ["run", "tiny.toml", "--toolchain", "nonsense"],
        "resume-and-suite": ["run", "tiny.toml", "--resume", HEAD],
        "resume-not-there": ["run", "--resume", "results/nothing"],
        "compare-no-side": ["compare"],
        "compare-one-side": ["compare", BASE],
        "compare-three-sides": ["compare", BASE, HEAD, BOTH],
        "compare-itself": ["compare", BASE, BASE],
        "compare-within-and-side": ["compare", BASE, "--within", BASE],
        "compare-nowhere": ["compare", BASE, "nowhere"],
        "compare-within-nowhere": ["compare", "--within", "results"],
        "compare-filter": ["compare", BASE, HEAD, "--filter", "nothing*", "--no-remeasure"],
        "compare-row-budget": ["compare", BASE, HEAD, "--row-budget", "0"],
        "compare-results": ["compare", BASE, HEAD, "--no-remeasure", "--results", "tiny.toml/x"],
        "compare-two-toolchains": ["compare", "iree==3.13.0", "iree==3.12.0"],
        "compare-unlike": ["compare", BASE, PUBLISHED, "--no-remeasure"],
        "report-nothing": ["report"],
        "report-not-there": ["report", "results/nothing"],
        "report-no-run": ["report", "suites"],
        "report-full-out": ["report", HEAD, "--full-out", "full.md"],
        "report-out": ["report", HEAD, "--out", "tiny.toml/x"],
        "selfcheck-filter": ["selfcheck", "tiny.toml", "--filter", "nothing*"],
        "selfcheck-rows": ["selfcheck", "tiny.toml", "--rows", "0"],
        "ablate-plugin": ["ablate", "tiny.toml", "--model", "network", "--plugin", "channel-last"],
        "ablate-model": ["ablate", "tiny.toml", "--model", "networks", "--plugin", "channels-last"],
        "ablate-device": ["ablate", "tiny.toml", "--model", "network", "--plugin", "channels-last", "--device", "gpu"],
        "schema": ["schema", "suites"],
    }
    for name, arguments in wrong.items():
        yield Call(f"wrong-{name}", arguments, compiles=arguments[0] in ("run", "list", "selfcheck", "ablate"))


def _wrong_folders() -> Iterator[Call]:
    """Stored runs and comparisons that are damaged, or of a later harness."""
    later = [_update(f"{HEAD}/run.json", schema_version=99), _update(f"{SIDES}/comparison.json", schema_version=99)]
    damages: dict[str, tuple[str, Edit]] = {
        "header-cut": (HEAD, _cut(f"{HEAD}/run.json")),
        "header-empty": (HEAD, _update(f"{HEAD}/run.json", cases=[])),
        "header-list": (HEAD, _write(f"{HEAD}/run.json", "[]")),
        "header-later": (HEAD, later[0]),
        "builds-line": (HEAD, _prepend(f"{HEAD}/builds.jsonl", "{}\n")),
        "builds-missing": (HEAD, _remove(f"{HEAD}/builds.jsonl")),
        "builds-not-text": (HEAD, _prepend(f"{HEAD}/builds.jsonl", "\0\n")),
        "rounds-line": (HEAD, _prepend(f"{HEAD}/rounds.jsonl", '{"group": 1}\n')),
        "checks-line": (HEAD, _prepend(f"{HEAD}/checks.jsonl", "no JSON\n")),
        "unknown-case": (HEAD, _replace(f"{HEAD}/builds.jsonl", "network/stock@cpu", "network/other@cpu")),
        "comparison-cut": (SIDES, _cut(f"{SIDES}/comparison.json")),
        "comparison-list": (SIDES, _write(f"{SIDES}/comparison.json", "[]")),
        "comparison-later": (SIDES, later[1]),
        "comparison-rounds": (SIDES, _prepend(f"{SIDES}/rounds.jsonl", "{}\n")),
    }
    for name, (folder, edit) in damages.items():
        yield Call(f"damaged-{name}", ["report", folder], [edit])
    yield Call("damaged-compare", ["compare", BASE, HEAD, "--no-remeasure"], [_cut(f"{HEAD}/run.json")])
    yield Call("damaged-history", ["history"], [*later, _cut(f"{BASE}/builds.jsonl")])
    yield Call("damaged-resume", ["run", "--resume", HEAD], [_cut(f"{HEAD}/run.json")], compiles=True)


def _replace(name: str, old: str, new: str) -> Edit:
    def edit(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text, f"{name} has no {old}"
        (folder / name).write_text(text.replace(old, new, 1))

    return edit


def _write(name: str, text: str) -> Edit:
    return lambda folder: _put(folder / name, text)


def _prepend(name: str, text: str) -> Edit:
    return lambda folder: _put(folder / name, text + (folder / name).read_text())


def _cut(name: str) -> Edit:
    return lambda folder: _put(folder / name, (folder / name).read_text()[:-200])


def _remove(name: str) -> Edit:
    def edit(folder: Path) -> None:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return edit


def _update(name: str, **values: object) -> Edit:
    return lambda folder: _put(folder / name, json.dumps(json.loads((folder / name).read_text()) | values, indent=1))


def _on_another_machine(run: str) -> Edit:
    def edit(folder: Path) -> None:
        header = json.loads((folder / run / "run.json").read_text())
        header["environment"]["machine"]["id"] = "0123456789ab"
        header["environment"]["cpu"]["model"] = "Another CPU"
        _put(folder / run / "run.json", json.dumps(header, indent=1))

    return edit


def _event(folder: Path) -> None:
    head = {"ref": "topic", "sha": "0" * 40, "repo": {"id": 1, "owner": {"login": "owner"}}}
    request = {"number": 9, "head": head, "base": {"repo": {"id": 1}}}
    _put(
        folder / "event.json", json.dumps({"pull_request": request, "repository": {"id": 1, "full_name": "owner/name"}})
    )


def _put(path: Path, text: str) -> None:
    path.write_text(text)
