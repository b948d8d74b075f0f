"""What a search may change: what is offered for a device and a start, what goes together, and what is asked for."""

from collections.abc import Callable, Mapping
from dataclasses import make_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.bisect.variants import CompileConfig, uses_of
from harness.errors import UsageError
from harness.files import shipped
from harness.plugins import PLUGINS, Flags, NoOptions, Plugin, Rewrite, Step, TuningSpec, written_file
from harness.suite.flags import normalised
from harness.suite.load import FlagSet, load_flag_sets
from harness.toolchain import find_toolchain
from harness.toolchain.tools import compiler_flags, flag_name
from harness.tune import changes as room
from harness.tune.changes import Change, Sampler, changes_for, combine, groups
from tests.builders import a_device, a_suite, a_variant, register

STOCK = CompileConfig()
O2, O3 = "--iree-opt-level=O2", "--iree-opt-level=O3"
TILING, EARLY = "--iree-dispatch-creation-data-tiling", "--iree-global-opt-data-tiling"


Switches = make_dataclass("Switches", [("wide", bool, True), ("deep", bool, False), ("size", int, 4)], kw_only=True)
Required = make_dataclass("Required", [("text", str)], kw_only=True)
SPEC = TuningSpec(file=written_file("a.mlir", "module {}"))


def plugin(name: str, *steps: Step, options: type[Any] = NoOptions, **limits: Any) -> Plugin[Any]:
    return Plugin(name=name, version="1", description=f"does {name}", options=options, steps=lambda _: steps, **limits)


def flags(name: str, *compile_flags: str, **limits: Any) -> FlagSet:
    return FlagSet(name=name, description=f"gives {name}", compile=compile_flags, **limits)


def using(name: str) -> Change:
    return Change(name=name, parts=(), purpose="", config=CompileConfig(plugins=uses_of([(name, {})])))


Offer = Callable[..., tuple[Change, ...]]


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Offer:
    """The changes where only these plugins and flag sets are there."""
    monkeypatch.setattr(room, "shipped", lambda _: tmp_path)

    def offered(
        *given: Plugin[Any] | FlagSet, start: CompileConfig = STOCK, without: tuple[str, ...] = ()
    ) -> tuple[Change, ...]:
        register(monkeypatch, PLUGINS.group, *((each.name, each) for each in given if isinstance(each, Plugin)))
        flag_sets = tuple(each for each in given if isinstance(each, FlagSet))
        suite = a_suite(a_variant("stock", flag_sets=flag_sets))
        return changes_for(suite, start, a_device(compile_flags=(O2,)), "3.13.0", without=without)

    return offered


def names(changes: tuple[Change, ...]) -> list[str]:
    return [change.name for change in changes]


def test_a_plugin_comes_as_it_is_and_with_each_switch_the_other_way(offer: Offer) -> None:
    first, wide, deep = offer(plugin("tile", Flags(compile=("--tile",)), options=Switches))
    assert (first.name, first.parts, first.purpose) == ("tile", ("plugin tile",), "does tile")
    assert (wide.name, wide.parts) == ("tile.no-wide", ("plugin tile", "tile: wide = false"))
    assert (deep.name, deep.purpose) == ("tile.deep", "does tile; deep = true")
    assert groups((first, wide, deep)) == ((first, wide, deep),)


def test_switches_of_a_plugin_that_the_start_has_keep_its_other_options(offer: Offer) -> None:
    start = CompileConfig(plugins=uses_of([("tile", {"size": 8, "wide": False})]))
    changes = offer(plugin("tile", Flags(compile=("--tile",)), options=Switches), start=start)
    assert [(change.name, change.parts) for change in changes] == [
        ("tile.wide", ("tile: wide = true",)),
        ("tile.deep", ("tile: deep = true",)),
    ]
    assert combine(start, changes[:1]) == CompileConfig(plugins=uses_of([("tile", {"size": 8, "wide": True})]))


@pytest.mark.parametrize(
    "one",
    [
        plugin("spec", options=Required),
        plugin("gpu", Flags(compile=("--gpu",)), backends=("cuda",)),
        plugin("old", Flags(compile=("--old",)), toolchains="<3"),
        plugin("idle"),
        flags("gpu", "--gpu", backends=("cuda",)),
        flags("old", "--old", toolchains="<3"),
        flags("as-the-device", O2),
        flags("cancelled", TILING, EARLY),
    ],
)
def test_what_does_not_fit_or_does_nothing_is_not_offered(one: Plugin[Any] | FlagSet, offer: Offer) -> None:
    assert offer(one) == ()


def test_what_the_start_has_or_cannot_go_with_or_the_user_does_not_want_is_not_offered(offer: Offer) -> None:
    start = CompileConfig(flags=(TILING,), plugins=uses_of([("one", {})]))
    given = plugin("one", SPEC), plugin("two", SPEC), flags("tiling", f"{TILING}=true"), flags("early", EARLY)
    assert offer(*given, start=start) == ()
    tile, o1 = plugin("tile", Flags(compile=("--tile",)), options=Switches), flags("o1", "--iree-opt-level=O1")
    assert names(offer(tile, o1, flags("o3", O3), without=("tile", "*3"))) == ["o1"]
    with pytest.raises(UsageError, match=r'til leaves out nothing .*; did you mean "tile"'):
        offer(tile, without=("til",))
    # Equal changes are offered once, and a flag set that is called like a plugin has another name.
    equal = plugin("same", Flags(compile=("--a",))), flags("same", "--b"), flags("again", "-b=true")
    assert names(offer(*equal)) == ["same", "same-flags"]


def test_the_most_promising_come_first(offer: Offer) -> None:
    given = [
        flags("loops", "--iree-llvmcpu-loop-unrolling"),
        flags("peel", "--iree-llvmcpu-vector-pproc-strategy=peel"),
        flags("fuse", "--iree-dispatch-creation-fuse-multi-use"),
        flags("early", EARLY, "--iree-opt-level=O1"),
        flags("tiling", TILING),
        flags("o3", O3),
        flags("im2col", "--iree-global-opt-use-im2col-for-convs"),
        plugin("tile", Flags(compile=("--tile",)), options=Switches),
    ]
    assert names(offer(*given)) == [
        *("o3", "tiling", "tile", "im2col", "early", "tile.no-wide", "tile.deep", "fuse", "peel", "loops")
    ]
    assert [change.name for change in offer(*given) if change.is_level] == ["o3", "tiling"]


def test_alternatives_exclude_each_other(offer: Offer) -> None:
    changes = offer(
        plugin("one", SPEC),
        plugin("two", SPEC),
        flags("o3", O3),
        flags("o1", "--iree-opt-level=O1"),
        flags("o3-and-more", O3, "--more"),
        flags("tiling", TILING),
        flags("early", EARLY),
    )
    found = [sorted(change.name for change in group) for group in groups(changes)]
    assert found == [["o1", "o3"], ["early", "tiling"], ["one", "two"], ["o3-and-more"]]
    by_name = {change.name: change for change in changes}
    assert combine(STOCK, [by_name["o1"], by_name["o3-and-more"]]) is None
    together = combine(STOCK, [by_name["o3"], by_name["o3-and-more"], by_name["early"]])
    assert together == CompileConfig(flags=(EARLY, O3, "--more"))


def rewrite(phase: str) -> Rewrite:
    return Rewrite(function="harness.rewrites.regions:isolate_convolutions", phase=phase)


ORDER = ("ingress-canonicalize", "channels-last", "share-concat", "another", "isolate", "tuned", "late", "spec")


@given(st.permutations(ORDER), st.integers(0, len(ORDER)))
def test_plugins_come_in_the_order_of_their_phases_and_of_what_they_make(given: list[str], split: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        steps: dict[str, Step] = {**dict.fromkeys(ORDER, rewrite("input")), "late": rewrite("flow"), "spec": SPEC}
        register(patch, PLUGINS.group, *((name, plugin(name, step)) for name, step in steps.items()))
        changes = [using(name) for name in given[split:]]
        start = CompileConfig(plugins=uses_of((name, {}) for name in ORDER if name in given[:split]))
        config = combine(start, changes)
        assert config is not None
        assert [use.name for use in config.plugins] == list(ORDER)


def test_the_flag_sets_that_come_with_the_harness_are_all_different_and_known_to_the_compiler() -> None:
    sets = load_flag_sets(sorted(shipped("flagsets").glob("*.toml"))).values()
    assert all(flag_set.description for flag_set in sets)
    flags = [normalised(flag_set.compile) for flag_set in sets]
    assert len(set(flags)) == len(flags)
    assert {flag_name(flag) for group in flags for flag in group} <= compiler_flags(find_toolchain())


# --- which of them are tried together: none twice, promising ones first ---

GROUPS = (("O2", "O3"), ("tiling",), ("layout",), ("padding",))
ALONE = {"O2": -0.02, "O3": -0.10, "tiling": -0.20, "layout": 0.30, "padding": 0.0}


def told(alone: Mapping[str, float | None]) -> Sampler:
    sampler = Sampler(GROUPS)
    for name, log_ratio in alone.items():
        sampler.tell({name}, log_ratio)
    return sampler


def test_what_helped_alone_is_asked_for_together_first() -> None:
    assert told(ALONE).ask() == frozenset({"O3", "tiling"})


def test_two_that_hurt_each_other_are_taken_apart() -> None:
    sampler = told({**ALONE, "padding": -0.15})
    sampler.tell({"O3", "tiling", "padding"}, 0.5)
    sampler.tell({"tiling", "padding"}, 0.5)
    asked = sampler.ask()
    assert asked is not None and not {"tiling", "padding"} <= asked


def test_nothing_is_added_to_what_failed() -> None:
    sampler = told({**ALONE, "O3": None})
    sampler.tell({"O2", "tiling"}, None)
    asked = list(iter(sampler.ask, None))
    assert asked, "and it ends"
    assert not any("O3" in chosen or {"O2", "tiling"} <= chosen for chosen in asked)


log_ratios = st.none() | st.floats(-1, 1)


@settings(max_examples=20, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(ALONE, log_ratios)), st.lists(log_ratios, min_size=12, max_size=12))
def test_sets_are_possible_new_and_the_same_again(alone: dict[str, float | None], answers: list[float | None]) -> None:
    def search() -> list[frozenset[str]]:
        sampler, asked = told(alone), []
        for answer in answers:
            chosen = sampler.ask()
            if chosen is None:
                break
            asked.append(chosen)
            sampler.tell(chosen, answer)
        return asked

    asked = search()
    assert asked == search()
    assert len(set(asked)) == len(asked)
    assert all(len(chosen) > 1 for chosen in asked)
    assert all(len(chosen.intersection(group)) <= 1 for chosen in asked for group in GROUPS)
