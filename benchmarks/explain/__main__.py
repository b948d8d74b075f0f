"""How often `harness explain` names the right dispatch, on pairs whose difference is known.

    .venv/bin/python -m benchmarks.explain                     (a quarter of an hour; writes docs/explain.md's table)
    .venv/bin/python -m benchmarks.explain --releases          (pairs of older releases too; minutes more)
    .venv/bin/python -m benchmarks.explain --pairs 'loop-*'    (some of them)

Each pair is compiled by the harness and explained by the command itself. What was stopped goes on: pairs that have a
line in results/explain.jsonl are not explained again, and their lines are in the table.
"""

import argparse
import sys
from fnmatch import fnmatchcase
from pathlib import Path

from benchmarks.documents import replace_between
from benchmarks.explain.pairs import all_pairs
from benchmarks.explain.recording import ROOT, read, record
from benchmarks.explain.scores import score
from benchmarks.explain.tables import render

BEGIN, END = "<!-- made by `python -m benchmarks.explain`: begin -->", "<!-- benchmarks.explain: end -->"
# Wall seconds of looking, of each pair: of a dozen rows, what it takes to call one changed, and little more.
BUDGET_S = 20.0


def main() -> int:
    """Explain the pairs that are left, and write the table; 1 where one cannot be explained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", default="*", help="only pairs whose name matches; a shell pattern")
    parser.add_argument("--releases", action="store_true", help="those too that need older releases")
    parser.add_argument("--budget", type=float, default=BUDGET_S, help=f"seconds of looking, of each ({BUDGET_S:g})")
    parser.add_argument("--recording", type=Path, default=ROOT / "results" / "explain.jsonl", help="JSON lines")
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "explain.md", help="where the table goes")
    parser.add_argument("--no-wait", action="store_true", help="measure beside another harness, as on another core")
    arguments = parser.parse_args()
    chosen = all_pairs(releases=arguments.releases).values()
    asked = [pair for pair in chosen if fnmatchcase(pair.name, arguments.pairs)]
    failed = record(asked, arguments.recording, budget_s=arguments.budget, wait=not arguments.no_wait)
    recorded, known = read(arguments.recording), all_pairs(releases=True)
    scores = [score(pair, recorded[name]) for name, pair in known.items() if name in recorded]
    if scores:
        replace_between(arguments.document, BEGIN, END, render(scores))
    sys.stderr.writelines(f"{sentence}\n" for sentence in failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
