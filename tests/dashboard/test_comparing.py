"""The command line that compares what was before a change with what came after."""

from __future__ import annotations

from typing import Any

import pytest

from harness.dashboard.comparisons import compare_command
from harness.history.changes import Change
from tests.dashboard.made import make_change

CHANGE = make_change("block/stock@cpu", last_good="one", first_bad="two")
RUNS = "harness compare results/one results/two"


def command(
    change: Change = CHANGE,
    *,
    before: str = "3.11.0",
    after: str = "3.13.0",
    references: tuple[str | None, str | None] = (None, None),
    is_peer: bool = False,
) -> str:
    rows: list[dict[str, Any]] = [
        {"run": run, "toolchain": release, "reference": reference, "suite_file": "suites/our smoke.toml"}
        for run, release, reference in zip(("one", "two"), (before, after), references, strict=True)
    ]
    return compare_command(change, {row["run"]: row for row in rows}, "results/", is_peer=is_peer)


def test_toolchains_that_differ_are_compared_on_the_suite_whatever_else_the_runs_had() -> None:
    told = "harness compare iree==3.11.0 iree==3.13.0 --suite 'suites/our smoke.toml' --filter block/stock@cpu"
    assert command() == told
    assert command(references=("3.12.0", "3.12.0")) == told


def test_under_one_toolchain_the_two_runs_are() -> None:
    assert command(before="3.13.0") == f"{RUNS} --filter block/stock@cpu"


def test_where_runs_have_several_toolchains_their_names_end_in_them_and_other_devices_are_left_out() -> None:
    alike = command(before="3.13.0", references=("3.12.0", "3.12.0"))
    assert alike == f"{RUNS} --filter 'block/stock@cpu:*'"
    mixed = command(before="3.13.0", references=(None, "3.12.0"))
    assert mixed == f"{RUNS} --filter block/stock@cpu --filter 'block/stock@cpu:*'"


def test_what_happens_to_the_reference_is_seen_in_the_two_runs() -> None:
    reference = make_change("block/stock@cpu", role="reference", last_good="one", first_bad="two")
    assert command(reference, references=("3.12.0", "3.12.0")) == f"{RUNS} --filter 'block/stock@cpu:*'"


def test_a_peer_is_compared_by_no_command() -> None:
    assert command(is_peer=True) == ""


@pytest.mark.parametrize("release", ["3.14.0.dev0+4fcc", "a build", "", "3.13.0; rm"])
def test_what_cannot_be_installed_by_its_name_is_not_asked_for(release: str) -> None:
    assert command(before=release) == f"{RUNS} --filter block/stock@cpu"


def test_runs_that_are_gone_are_named_all_the_same() -> None:
    gone = make_change("a[1]/stock@cpu", last_good="nobody", first_bad="two")
    assert command(gone) == "harness compare results/nobody results/two --filter 'a[[]1]/stock@cpu'"
