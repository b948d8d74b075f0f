"""Finding flags that a compiler does not know, once for each variant that gives them."""

from __future__ import annotations

from harness.suite.cases import unknown_flags
from harness.suite.load import Suite
from tests.plan.conftest import a_device, a_model, a_suite, a_variant, plan

KNOWN = frozenset({"a", "b", "iree-load-plugin"})


def unknown(suite: Suite) -> list[tuple[str, str]]:
    return [(case.name, flag) for case, flag in unknown_flags(plan(suite), KNOWN)]


def test_known_flags_are_known_however_they_are_written() -> None:
    assert unknown(a_suite(a_variant("stock", "--a", "-b=2"))) == []


def test_an_unknown_flag_comes_with_the_first_case_that_has_it() -> None:
    suite = a_suite(
        a_variant("stock", "--a"),
        a_variant("odd", "--c=1", "--d"),
        models=(a_model("small"), a_model("big")),
        devices=(a_device("cpu"), a_device("gpu")),
    )
    assert unknown(suite) == [("small/odd@cpu", "--c=1"), ("small/odd@cpu", "--d")]


def test_a_compiler_plugin_may_bring_flags_of_its_own() -> None:
    assert unknown(a_suite(a_variant("stock", "--iree-load-plugin=lib.so", "--c"), a_variant("odd", "--c"))) == [
        ("net/odd@cpu", "--c")
    ]
