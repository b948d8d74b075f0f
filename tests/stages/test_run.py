"""What a run says that it has to do."""

from dataclasses import replace

import pytest

from harness.cache import cache_root
from harness.compile import BuildCache
from harness.records.case import Case
from harness.records.run import Failure
from harness.stages.build import requests_of
from harness.stages.context import MEASURE, Done, unchecked
from harness.stages.run import foresee
from tests.builders import a_suite, a_variant, make_case
from tests.stages.conftest import UnderWay

STOCK, FAST = make_case(), make_case("fast", compile_flags=["--fast"])
AGAIN = replace(FAST, name="net/again@cpu")
NO = Failure(stage="verify", message="no")


def foreseen(under_way: UnderWay, done: Done | None = None, *cases: Case) -> tuple[str, float | None]:
    """The sentence, and the seconds of timed rounds."""
    suite = a_suite(a_variant("stock"), a_variant("fast"))
    context = under_way.context(cases or (STOCK, FAST), suite, done)
    sentence, planned_s = foresee(context, requests_of(context, {"net": under_way.artifact}), ["net"])
    return sentence, planned_s[MEASURE]


def test_it_says_what_there_is_to_do_and_what_of_it_is_in_the_cache(under_way: UnderWay) -> None:
    budget_s = float(under_way.directory.header.settings["budget_s"])
    timed = f"{budget_s:.0f} s of timed rounds"
    assert foreseen(under_way) == (f"To do: 2 compiles, 2 checks, {timed}", budget_s)
    under_way.artifact.mlir.write_text("module {}")
    (request,) = requests_of(under_way.context([STOCK], a_suite()), {"net": under_way.artifact})
    BuildCache(cache_root()).compile(request)
    sentence, _ = foreseen(under_way, None, STOCK, FAST, AGAIN)
    assert sentence == f"To do: 1 compile (1 more is in the cache), 3 checks, {timed}"


def test_a_run_that_goes_on_has_what_is_left_to_do(under_way: UnderWay) -> None:
    settings = under_way.directory.header.settings
    budget_s, generations = float(settings["budget_s"]), int(settings["generations"])
    checks = {STOCK.name: replace(unchecked(STOCK, NO), failure=None), FAST.name: unchecked(FAST, NO)}
    sentence, timed_s = foreseen(under_way, Done(checks=checks, generations={(STOCK.group, 0): (budget_s, 5)}))
    assert "check" not in sentence
    assert timed_s == pytest.approx((generations - 1) * budget_s / generations)
