"""A run of several hosts: each figure is told with the host that it is of, and with that host's class of machines."""

import json
from dataclasses import replace
from typing import Any

import pytest

from harness.errors import ExitCode
from harness.machine.environment import machine_class
from harness.records.run import HostRecord, Peak, Placed, Run
from harness.report import render
from harness.report.rows import rows_of
from harness.report.run_report import build_report
from tests.report.builders import make_build, make_case, make_header, make_rounds

HOSTS = {"ash": "AMD EPYC 7B13", "elm": "Neoverse-V2"}
CHECKED = {"flagged": 0, "rows": 40, "upper_bound": 0.07, "detects": 0.02, "seconds": 9.0, "when": ""}


def an_environment(host: str) -> dict[str, dict[str, Any]]:
    return {
        "machine": {"id": f"{host}00", "system": "Linux", "architecture": "x86_64", "kernel": "6.1"},
        "cpu": {"model": HOSTS[host], "usable_cores": 2},
        "devices": {"cpu": f"{HOSTS[host]} by local-sync"},
        "selfcheck": {**CHECKED, "suite": f"/home/{host}/small.toml"},
    }


@pytest.fixture
def run() -> Run:
    """`block` was measured on ash, and `mm` on elm since birch is gone."""
    cases = tuple(make_case(model, variant, "cpu") for model in ("block", "mm") for variant in ("stock", "fast"))
    host_of = {"block@cpu": "ash", "mm@cpu": "elm"}
    rounds = [
        replace(measured, host=host)
        for group, host in host_of.items()
        for measured in make_rounds(group, {case.name: 1e6 for case in cases if case.group == group})
    ]
    return Run(
        header=make_header(cases),
        builds=tuple(make_build(case, code=case.name.encode().hex()) for case in cases),
        rounds=tuple(rounds),
        hosts=tuple(HostRecord(name=host, environment=an_environment(host)) for host in HOSTS),
        placed=(
            Placed(group="block@cpu", host="ash"),
            Placed(group="mm@cpu", host="birch"),
            Placed(group="mm@cpu", host="elm", attempt=1, why="birch did not answer for 60 s"),
        ),
        peaks=tuple(
            Peak(device="cpu", threads=1, operations_per_s=ops, operations_by="sgemm", bytes_per_s=1e9, host=host)
            for host, ops in zip(HOSTS, (1e9, 2e9), strict=True)
        ),
        finished=True,
    )


def test_points_have_the_class_and_the_machine_of_the_host_that_measured_them(run: Run) -> None:
    rows = rows_of(run)
    classes = {host: machine_class(an_environment(host)) for host in HOSTS}
    assert {(row["model"], row["machine"], row["machine_class"]) for row in rows["points"]} == {
        ("block", "ash00", classes["ash"]),
        ("mm", "elm00", classes["elm"]),
    }
    (row,) = rows["runs"]
    assert row["machine_class"] == f"{classes['ash']} + {classes['elm']}"
    assert (row["machine"], row["cpu"]) == ("ash00 + elm00", "AMD EPYC 7B13 + Neoverse-V2")
    assert row["devices"] == "cpu: AMD EPYC 7B13 by local-sync + Neoverse-V2 by local-sync"


def test_each_page_lists_the_hosts_and_heads_each_table_with_its_own(run: Run) -> None:
    page = render(run, "markdown", full=True)
    for text in (
        "2 hosts, AMD EPYC 7B13 + Neoverse-V2",
        "block on cpu of ash",
        "mm on cpu of elm",
        "machine elm00, Neoverse-V2, 2 cores, Linux",
        "mm@cpu was begun again on elm: birch did not answer for 60 s.",
        "On ash: 0 of 40 A/A rows flagged",
    ):
        assert text in page


def test_a_shard_says_which_it_is_and_may_have_nothing_to_measure(run: Run) -> None:
    shard = replace(run, header=replace(run.header, settings={**run.header.settings, "shard": "2/8"}))
    assert "This is shard 2/8 of its suite" in render(shard, "markdown")
    assert json.loads(render(shard, "json"))["run"]["shard"] == "2/8"
    nothing: dict[str, Any] = {"cases": (), "models": ()}
    statuses = [
        build_report(Run(header=replace(header, **nothing), finished=True)).summary.exit_code
        for header in (shard.header, run.header)
    ]
    assert statuses == [ExitCode.OK, ExitCode.CASE_FAILED]
