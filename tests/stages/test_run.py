"""What a run says that it has to do."""

from dataclasses import replace

from harness.cache import cache_root
from harness.compile import BuildCache
from harness.records.case import Case
from harness.records.run import Failure
from harness.stages.build import requests_of
from harness.stages.context import Done, unchecked
from harness.stages.run import to_do
from tests.builders import a_suite, a_variant, make_case
from tests.stages.conftest import UnderWay

STOCK, FAST = make_case(), make_case("fast", compile_flags=["--fast"])
AGAIN = replace(FAST, name="net/again@cpu")
NO = Failure(stage="verify", message="no")


def said(under_way: UnderWay, done: Done | None = None, *cases: Case) -> str:
    context = under_way.context(cases or (STOCK, FAST), a_suite(a_variant("stock"), a_variant("fast")), done)
    return to_do(context, requests_of(context, {"net": under_way.artifact}), ["net"])


def test_it_says_what_is_left_to_do_and_what_of_it_is_in_the_cache(under_way: UnderWay) -> None:
    budget_s = float(under_way.directory.header.settings["budget_s"])
    timed = f"{budget_s:.0f} s of timed rounds"
    assert said(under_way) == f"To do: 2 compiles, 2 checks, {timed}"
    under_way.artifact.mlir.write_text("module {}")
    (request,) = requests_of(under_way.context([STOCK], a_suite()), {"net": under_way.artifact})
    BuildCache(cache_root()).compile(request)
    assert said(under_way, None, STOCK, FAST, AGAIN) == (
        f"To do: 1 compile (1 more is in the cache), 3 checks, {timed}"
    )
    checks = {STOCK.name: replace(unchecked(STOCK, NO), failure=None), FAST.name: unchecked(FAST, NO)}
    done = Done(checks=checks, generations={(STOCK.group, 0): (budget_s - 1, 5)})
    assert said(under_way, done) == "To do: 1 compile (1 more is in the cache), 1 s of timed rounds"
