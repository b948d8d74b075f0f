"""Whether recorded numbers may be compared at all, and what is said of the machines that they are from."""

from __future__ import annotations

from typing import Any

import pytest

from harness.compare.hosts import describe_machine, machine_facts, require_comparable, selfcheck_of, side_facts
from harness.compare.pairs import Side, pair_runs
from harness.errors import ExitCode, UsageError
from harness.records.comparison import Row, SelfcheckFacts
from harness.records.run import ToolchainRecord
from tests.compare.runs import a_case, a_side

HERE = {"id": "3f2a91c04b7e", "virtual": True, "system": "Linux", "distribution": "Debian GNU/Linux 12"}
CPU = {"model": "a processor", "usable_cores": 2}
CHECKED = {
    "flagged": 0,
    "rows": 300,
    "upper_bound": 0.0099,
    "detects": 0.02,
    "seconds": 15.0,
    "when": "2026-11-21T03:50:12+00:00",
    "suite": "suites/small.toml",
}


def a_host(label: str = "results/base", *, machine: dict[str, Any] = HERE, **environment: dict[str, Any]) -> Side:
    return a_side(a_case(), label=label, environment={"machine": machine, "cpu": CPU, **environment})


def refusal(base: Side, head: Side) -> str:
    pairs = pair_runs(base, head)
    with pytest.raises(UsageError) as caught:
        require_comparable(base, head, pairs, across_hosts=False)
    assert caught.value.exit_code == ExitCode.USAGE
    require_comparable(base, head, pairs, across_hosts=True)
    return str(caught.value)


ADVICE = "measure both on one machine, or give --across-hosts to compare them all the same"


def test_one_machine() -> None:
    base, head = a_host(), a_host("results/head")
    require_comparable(base, head, pair_runs(base, head), across_hosts=False)


def test_different_machines_are_told_apart_by_their_ids() -> None:
    head = a_host("results/head", machine={**HERE, "id": "0123456789ab", "virtual": False})
    assert refusal(a_host(), head) == (
        "results/base and results/head were measured on different machines (machine 3f2a91c04b7e (virtual), a "
        "processor, 2 cores, Debian GNU/Linux 12; machine 0123456789ab, a processor, 2 cores, Debian GNU/Linux 12); "
        f"{ADVICE}"
    )


def test_machines_without_an_id_may_be_any() -> None:
    sentence = f"whether results/base and results/head were measured on one machine is not known; {ADVICE}"
    assert refusal(a_host(), a_host("results/head", machine={})) == sentence
    assert refusal(a_host(machine={}), a_host("results/head", machine={})) == sentence


def test_a_run_is_on_the_machine_that_it_is_on() -> None:
    unknown = a_host(machine={})
    require_comparable(unknown, unknown, pair_runs(unknown, unknown), across_hosts=False)


def test_another_device_under_the_same_name() -> None:
    base = a_host(devices={"cpu": "a GPU"})
    assert refusal(base, a_host("results/head", devices={"cpu": "another GPU"})) == (
        f"device cpu was a GPU in results/base and another GPU in results/head; {ADVICE}"
    )
    assert refusal(base, a_host("results/head")) == (
        f"device cpu was a GPU in results/base and not there in results/head; {ADVICE}"
    )


def test_a_device_that_no_compared_case_uses_does_not_matter() -> None:
    base, head = a_host(devices={"gpu": "a GPU"}), a_host("results/head", devices={"gpu": "another GPU"})
    require_comparable(base, head, pair_runs(base, head), across_hosts=False)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, "a machine of which nothing is known"),
        ({"machine": {"system": "Linux"}, "cpu": {"usable_cores": 1}}, "1 core, Linux"),
        ({"machine": HERE, "cpu": CPU}, "machine 3f2a91c04b7e (virtual), a processor, 2 cores, Debian GNU/Linux 12"),
    ],
)
def test_a_machine_in_words_as_far_as_it_is_known(environment: dict[str, dict[str, Any]], words: str) -> None:
    assert describe_machine(environment) == words


def test_a_side_says_which_run_and_which_compiler_it_is() -> None:
    toolchains = [
        ToolchainRecord(version="3.13.0", revision="89ece87b890123456789", compiler_sha256=""),
        ToolchainRecord(version="3.12.0", revision="", compiler_sha256=""),
    ]
    facts = side_facts(a_side(a_case(), toolchains=toolchains, environment={}), "results/base")
    assert (facts.label, facts.run, facts.suite) == ("results/base", "20261121-035012-small", "suites/small.toml")
    assert facts.toolchains == ("3.13.0 (89ece87b89)", "3.12.0")


def test_what_the_last_selfcheck_found() -> None:
    assert selfcheck_of({"selfcheck": CHECKED}) == SelfcheckFacts(**CHECKED)  # type: ignore[arg-type]
    assert selfcheck_of({}) is None
    assert selfcheck_of({"selfcheck": {}}) is None
    assert selfcheck_of({"selfcheck": {"rows": "many"}}) is None


def test_controls_that_were_called_changed_are_counted() -> None:
    def a_row(verdict: Any, *, control: bool) -> Row:
        return Row(
            case="net/stock@cpu",
            model="net",
            variant="stock",
            device="cpu",
            metric="latency",
            verdict=verdict,
            control=control,
        )

    rows = [
        a_row("regressed", control=False),
        *(a_row(verdict, control=True) for verdict in ("regressed", "improved", "unchanged", "failed")),
    ]
    facts = machine_facts({"machine": HERE}, rows)
    assert (facts.controls, facts.controls_flagged, facts.selfcheck) == (4, 2, None)
