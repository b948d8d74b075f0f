"""Which hosts measure which rows of a comparison."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.compare.pairs import Pair
from harness.fleet.placing import Host
from harness.fleet.row_plan import Placing, RowNeed, place_rows
from tests.compare.runs import a_case, a_side
from tests.fleet.test_placing import a_group, a_host

_CPU = "--iree-llvmcpu-target-cpu=host"


def a_need(model: str = "net", device: str = "cpu", **changes: object) -> RowNeed:
    return RowNeed(group=a_group(model, device, **changes))


def placed(needs: dict[str, RowNeed], *hosts: Host, spread: bool = False, **given: Any) -> Placing:
    return place_rows(needs, hosts, **{"kept": {}, "checked_on": {}, "spread": spread, **given})


def needs_of(*environments: dict[str, Any], **case: Any) -> RowNeed:
    base, head = (a_side(a_case(**case), environment=environment) for environment in environments)
    pair = Pair(name="net/stock@cpu", base=a_case(**case), head=a_case(**case))
    work, plan = SimpleNamespace(pair=pair), SimpleNamespace(base=base, head=head)
    return RowNeed.of(work, plan)  # type: ignore[arg-type]


def test_all_rows_of_a_group_are_where_its_head_was_checked_if_it_is_there() -> None:
    needs = {"net/a@cpu": a_need(), "net/b@cpu": a_need(), "mlp/a@cpu": a_need("mlp")}
    hosts = [a_host("a"), a_host("b"), a_host("c")]
    found = placed(needs, *hosts, checked_on={"net@cpu": "c", "mlp@cpu": "gone"}).rows
    assert found["net/a@cpu"] == found["net/b@cpu"] == ("c",)
    assert found["mlp/a@cpu"] in [("a",), ("b",)]


def test_rows_are_spread_over_hosts_of_one_class_alone() -> None:
    hosts = [a_host(name, "gpu", classes={"gpu": "H100" if name == "c" else "A100"}) for name in "dcba"]
    hosts[2] = replace(hosts[2], host_cpu="Xeon")
    found = placed({"row": a_need(device="gpu")}, *hosts, spread=True, checked_on={"net@gpu": "a"})
    assert found.rows == {"row": ("a", "d")}


@given(hosts=st.sets(st.sampled_from("abcdef"), min_size=1), spread=st.booleans())
def test_a_row_keeps_its_hosts_whoever_is_there_when_it_goes_on(hosts: set[str], spread: bool) -> None:
    there = [a_host(name) for name in sorted(hosts)]
    kept = {"row": ("a", "b")}
    assert placed({"row": a_need()}, *there, spread=spread, kept=kept).rows == kept


def test_a_module_is_measured_on_the_cpu_that_it_is_made_for() -> None:
    epyc, xeon = ({"cpu": {"model": model, "flags": "avx2"}} for model in ("EPYC", "Xeon"))
    assert needs_of(epyc, xeon).group.cpu == ""
    need = needs_of(epyc, epyc, compile_flags=(_CPU,))
    assert (need.group.cpu, need.two_cpus) == ("EPYC avx2", False)
    other = a_host("a", host_cpu="Xeon avx2", compilers={})
    assert placed({"row": need}, other, a_host("b", compilers={})).rows == {"row": ("b",)}
    why = "it has another CPU than the one that the group's modules are made for"
    assert placed({"row": need}, other).nowhere == {"row": f"net@cpu: no host can measure it (a: {why})"}
    two = needs_of(epyc, xeon, compile_flags=(_CPU,))
    assert placed({"row": two}, other).nowhere == {
        "row": "its two modules are made for two CPUs; make both runs again, with --fleet"
    }
