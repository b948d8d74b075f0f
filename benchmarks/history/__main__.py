"""What a history costs, and how often its changes are found.

    make history       (or: .venv/bin/python -m benchmarks.history)

does `detection`, which plays series with known changes and writes section "How often changes are found" of
docs/history.md; `scale`, which measures times and memory of large histories and comparisons and writes "Scale"; and
`dashboard`, which builds and opens one in Chromium and writes "The dashboard".
`made` and `folders` only write a made-up history, to look at.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.history.made import Size
from harness.store.schema import Role

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "history.md"


def main(arguments: Sequence[str]) -> None:
    """Do what the first argument says, or all measurements."""
    if not arguments:
        for what in ("detection", "scale", "dashboard"):
            main([what])
    elif arguments[0] == "detection":
        from benchmarks.history.detection import main as measure_detection

        measure_detection(arguments[1:])
    else:
        _do(_parser().parse_args(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchmarks.history", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(dest="what", required=True)
    parts.add_parser("detection", help="how often changes are found", add_help=False)
    scale = parts.add_parser("scale", help="what large histories and comparisons take")
    scale.add_argument("--document", type=Path, default=DOCUMENT, help="where the tables go")
    scale.add_argument("--repeats", type=int, default=5, help="of each figure (default: 5)")
    scale.add_argument("--share", type=float, default=1.0, help="of the full sizes, to try it (default: 1)")
    dashboard = parts.add_parser("dashboard", help="how long a dashboard takes, to build and to open")
    dashboard.add_argument("--document", type=Path, default=DOCUMENT, help="where the tables go")
    dashboard.add_argument("--series", type=int, default=1000, help="of the history (default: 1000)")
    dashboard.add_argument("--runs", type=int, default=500, help="in it (default: 500)")
    made = parts.add_parser("made", help="write a made-up history")
    made.add_argument("--out", type=Path, required=True, help="the results folder")
    made.add_argument("--series", type=int, default=1000, help="of it (default: 1000)")
    made.add_argument("--runs", type=int, default=500, help="in it (default: 500)")
    folders = parts.add_parser("folders", help="write whole run folders of a made-up suite")
    folders.add_argument("--out", type=Path, required=True, help="the results folder")
    folders.add_argument("--cases", type=int, default=100, help="of each run (default: 100)")
    folders.add_argument("--runs", type=int, default=50, help="how many (default: 50)")
    folders.add_argument("--one-toolchain", action="store_true", help="only that day's newest, and no reference")
    return parser


def _do(arguments: argparse.Namespace) -> None:
    if arguments.what == "scale":
        from benchmarks.history.scale import measure_scale
        from benchmarks.history.scale_tables import render_scale, write_scale

        scale = measure_scale(share=arguments.share, repeats=arguments.repeats)
        sys.stdout.write(f"{render_scale(scale)}\n")
        write_scale(arguments.document, scale)
    elif arguments.what == "dashboard":
        from benchmarks.history.dashboard import print_dashboard

        print_dashboard(arguments.series, arguments.runs, arguments.document)
    elif arguments.what == "made":
        from benchmarks.history.made_tables import write_history

        write_history(arguments.out, Size(series=arguments.series, runs=arguments.runs))
    elif arguments.what == "folders":
        from benchmarks.history.made_runs import Folders, write_runs
        from harness.report import render

        roles: tuple[Role, ...] = ("newest",) if arguments.one_toolchain else ("reference", "newest")
        wanted = Folders(cases=arguments.cases, runs=arguments.runs, roles=roles)
        write_runs(arguments.out, wanted, report=lambda run: render(run, "markdown", full=True))


if __name__ == "__main__":
    main(sys.argv[1:])
