"""What a comment says of folders that only the machine had that measured."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from harness.records.comparison import Comparison, MachineFacts
from harness.records.run import Run
from harness.report import render
from harness.report.github import render_comment
from harness.report.pages import Links
from harness.report.portable import portable, portable_comparison
from harness.report.run_report import build_report
from tests.report.builders import MACHINE, SELFCHECK, make_comparison, make_side, make_timed

RUNNER = "/ci/temporary/results"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("harness compare /t/r/old /t/r/new", "harness compare results/old results/new"),
        ("harness compare --within /t/r/a/ --results /t/r", "harness compare --within results/a"),
        ("harness compare --within=/t/r/a --results=/t", "harness compare --within=results/a"),
        ("harness compare a b --format json --filter c", "harness compare a b --filter c"),
        ("harness compare a b --suite /src/suites/ours.toml", "harness compare a b --suite ours.toml"),
        ("harness compare C:\\runs\\old D:/new", "harness compare results/old results/new"),
        (
            "harness compare iree==3.12.0 results/new --controls 2",
            "harness compare iree==3.12.0 results/new --controls 2",
        ),
        ("harness compare a b --results", "harness compare a b"),
        ("", ""),
    ],
)
def test_commands_have_folders_by_their_names(given: str, said: str) -> None:
    assert portable(given.split()) == said.split()


def measured_on_a_runner() -> Comparison:
    """All places that may hold a path."""
    repro = (f"harness compare {RUNNER}/old {RUNNER}/new --filter mm/stock@cpu", "# base: module 0123")
    return make_comparison(
        [make_timed("mm/stock@cpu", 1.0, 1.2, "regressed", repro=repro)],
        base=make_side(f"{RUNNER}/old", "3.12.0", suite="/tmp/base-tree/suites/ours.toml"),  # noqa: S108
        head=make_side(f"{RUNNER}/new", "3.13.0", suite="suites/ours.toml"),
        machine=MachineFacts(description=MACHINE, selfcheck=replace(SELFCHECK, suite="/home/me/review/checked.toml")),
        command=("harness", "compare", f"{RUNNER}/old", f"{RUNNER}/new", "--results", RUNNER, "--format", "json"),
    )


def test_a_comment_has_no_folder_of_the_runner_and_the_full_report_keeps_them(small_run: Run) -> None:
    text = render_comment(measured_on_a_runner())
    assert "/home/" not in text
    assert "/tmp/" not in text  # noqa: S108
    assert "| given as | results/old | results/new |" in text
    assert "harness compare results/old results/new --filter mm/stock@cpu\n# base: module 0123" in text
    assert "\nharness compare results/old results/new\n" in text
    assert "(checked with checked.toml)" in text
    command = f"harness compare {RUNNER}/old {RUNNER}/new --results {RUNNER}"
    assert command in render(measured_on_a_runner(), "markdown", full=True)
    report = build_report(small_run)
    checked = {**report.facts.environment, "selfcheck": asdict(replace(SELFCHECK, suite="/home/me/checked.toml"))}
    text = render_comment(replace(report, facts=replace(report.facts, environment=checked)))
    assert "(checked with checked.toml)" in text


def test_what_has_no_such_folder_stays_as_it_is(full_comparison: Comparison) -> None:
    assert portable_comparison(full_comparison) == full_comparison
    unreadable = make_comparison([make_timed("m/v@d", 1.0, 1.2, "regressed", repro=("harness 'compare /tmp/a",))])
    assert portable_comparison(unreadable).rows == unreadable.rows


def test_the_full_report_is_a_link_or_where_it_was_measured(full_comparison: Comparison) -> None:
    printed = f"is printed where it was measured by `harness report results/{full_comparison.id}"
    assert printed in render_comment(full_comparison)
    linked = render_comment(full_comparison, links=Links(artifact_url="https://github.com/o/r/actions/runs/1"))
    assert "harness report results/" not in linked
    assert "[Full report](https://github.com/o/r/actions/runs/1)" in linked
