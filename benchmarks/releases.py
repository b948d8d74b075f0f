"""ESRGAN's block over all releases of IREE, for docs/explain.md: measured, drawn, and each large step explained.

    make releases      (or: python -m benchmarks.releases; a quarter of an hour, and 700 MB a release the first time)

Runs `harness run` over the releases and `harness explain` across each large step, and keeps both in results/published/.
With --no-measure it draws the picture and writes the page's part from what is kept there.
"""

import argparse
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.documents import replace_between
from harness.records.explanation import Explanation
from harness.records.run import Run
from harness.report.markdown import to_markdown
from harness.report.page import Bullets, Code, Page
from harness.report.releases import steps
from harness.report.run_report import build_report
from harness.store.folders import EXPLANATION
from harness.store.run_directory import load_run

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PUBLISHED = RESULTS / "published"
KEPT = PUBLISHED / "esrgan-releases"
DOCUMENT = ROOT / "docs" / "explain.md"
PICTURE = ROOT / "docs" / "pictures" / "esrgan-releases.png"
BEGIN, END = "<!-- made by `python -m benchmarks.releases`: begin -->", "<!-- benchmarks.releases: end -->"

SUITE, CASE = "suites/esrgan.toml", "rdb/stock@cpu"
RELEASES = "3.0.0..3.13.0"
# A step that changes less than this is drawn and not explained, and so are those beyond the largest.
SMALLEST, MOST = 0.05, 2


def measure(budget_s: int, explain_budget_s: int) -> None:
    """Run and explain, and keep both in the place of what was kept before."""
    of_case = ["--filter", CASE, "--toolchain", RELEASES]
    run = _made(["run", SUITE, *of_case, "--budget", str(budget_s)], "run.json")
    made = {KEPT: run}
    for before, after in large_steps(load_run(run)):
        sides = [f"iree=={before}", f"iree=={after}", CASE, "--suite", SUITE]
        made[_kept(before, after)] = _made(["explain", *sides, "--budget", str(explain_budget_s)], "explanation.json")
    for old in PUBLISHED.glob(f"{KEPT.name}*"):
        shutil.rmtree(old)
    for kept, folder in made.items():
        shutil.copytree(folder, kept, ignore=shutil.ignore_patterns(".*"))


def _made(words: list[str], file: str) -> Path:
    """Call the harness; the newest of the folders that it makes with such a file.

    Raises:
        RuntimeError: It makes none.
    """
    before = set(RESULTS.iterdir())
    subprocess.run([Path(sys.executable).with_name("harness"), *words], cwd=ROOT)
    made = sorted(folder for folder in set(RESULTS.iterdir()) - before if (folder / file).is_file())
    if not made:
        raise RuntimeError(f"harness {shlex.join(words)} made no {file}; it says above why")
    return made[-1]


def large_steps(run: Run) -> list[tuple[str, str]]:
    """Neighbours among the releases that were measured between which the case changed most, in their order."""
    found = [(step.before, step.after) for step in steps(build_report(run), SMALLEST)[:MOST]]
    order = [toolchain.version for toolchain in run.header.toolchains]
    return sorted(found, key=lambda step: order.index(step[0]))


def explanations(run: Run) -> list[Explanation]:
    """Those of its large steps that are kept, in their order."""
    folders = (_kept(*step) for step in large_steps(run))
    return [EXPLANATION.load(folder) for folder in folders if EXPLANATION.is_at(folder)]


def _kept(before: str, after: str) -> Path:
    return PUBLISHED / f"{KEPT.name}-{before}-{after}"


def render() -> str:
    """The page's part: the picture, a line a step, and what repeats it all."""
    run = load_run(KEPT)
    found = explanations(run)
    plot = f"harness plot {KEPT.relative_to(ROOT)} --kind releases --out {PICTURE.name}"
    commands = [shlex.join(run.header.command), plot, *(shlex.join(each.command) for each in found)]
    alt = f"{CASE} over the releases of IREE from {RELEASES.replace('..', ' to ')}"
    page = to_markdown(Page(parts=(Bullets([each.sentence for each in found]), Code("\n".join(commands), "sh"))))
    return f"![{alt}]({PICTURE.relative_to(DOCUMENT.parent)})\n\n{page.strip()}"


def main() -> None:
    """Measure, draw and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-measure", action="store_true", help="write what is kept again")
    parser.add_argument("--budget", type=int, default=150, help="seconds of timed rounds for all releases")
    parser.add_argument("--explain-budget", type=int, default=40, help="seconds for each step")
    arguments = parser.parse_args()
    if not arguments.no_measure:
        measure(arguments.budget, arguments.explain_budget)
    plot = ["plot", str(KEPT), "--kind", "releases", "--out", str(PICTURE)]
    subprocess.run([Path(sys.executable).with_name("harness"), *plot], check=True)
    replace_between(DOCUMENT, BEGIN, END, render())


if __name__ == "__main__":
    main()
