"""What a report says of plugins and preprocessing flags: how often a rewrite matched, and what changed nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
from markdown_it import MarkdownIt

from harness.records.run import Build, PluginEffect, Run
from harness.report import render
from harness.report.remarks import effect_remarks
from tests.builders import make_case

UTIL = "--iree-preprocessing-pass-pipeline=builtin.module(util.func(cse))"
FUNC = "--iree-preprocessing-pass-pipeline=builtin.module(func.func(cse))"
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
REASON = "passes for func.func find nothing, since functions are util.func by then"


def remarks(*effects: PluginEffect, flags: tuple[str, ...] = ()) -> list[str]:
    case = make_case("wide", compile_flags=flags)
    return list(effect_remarks(case, Build(case=case.name, command=(), cache_key="", effects=effects)))


def rewrite(matched: int, *, changed: bool = True) -> PluginEffect:
    return PluginEffect(name="fold", matched=matched, changed=changed)


def step(name: str = "spec", *, changed: bool) -> PluginEffect:
    return PluginEffect(name=name, changed=changed)


@pytest.mark.parametrize(
    ("effect", "said"),
    [
        (rewrite(0, changed=False), "fold matched 0 places"),
        (rewrite(1), "fold matched 1 place"),
        (rewrite(16), "fold matched 16 places"),
        (rewrite(3, changed=False), "fold matched 3 places, and changed nothing"),
        (step(changed=False), "spec changed nothing"),
    ],
)
def test_one_plugin(effect: PluginEffect, said: str) -> None:
    assert remarks(effect) == [said]


def test_a_spec_that_changed_something_is_as_expected_and_needs_no_words() -> None:
    assert remarks(step(changed=True)) == []


def test_without_a_build_or_without_effects_there_is_nothing_to_say() -> None:
    assert list(effect_remarks(make_case(), None)) == []
    assert remarks() == []


def test_plugins_are_told_in_their_order() -> None:
    assert remarks(rewrite(2), step(changed=False), rewrite(0, changed=False)) == [
        "fold matched 2 places",
        "spec changed nothing",
        "fold matched 0 places",
    ]


def test_the_rewrites_of_one_plugin_are_told_together() -> None:
    assert remarks(rewrite(5), rewrite(1), rewrite(0, changed=False)) == ["fold matched 5, 1 and 0 places"]
    assert remarks(rewrite(0, changed=False), rewrite(2, changed=False)) == [
        "fold matched 0 and 2 places, and changed nothing"
    ]


def test_of_several_steps_of_one_plugin_the_idle_ones_are_counted() -> None:
    assert remarks(step(changed=True), step(changed=False), step(changed=True)) == [
        "1 of the 3 steps of spec changed nothing"
    ]
    assert remarks(step(changed=False), step(changed=False)) == ["spec changed nothing"]


def test_the_usual_mistake_is_named() -> None:
    assert remarks(step(changed=False), flags=(FUNC,)) == [f"spec changed nothing ({REASON})"]
    assert remarks(step(changed=False), flags=(UTIL,)) == ["spec changed nothing"]
    assert remarks(step(changed=False), flags=(UTIL.replace("util.func(", "my.func.func("),)) == [
        "spec changed nothing"
    ]


def test_of_several_it_is_not_laid_at_the_wrong_door() -> None:
    several = (step("spec", changed=False), step("passes", changed=False))
    assert remarks(*several, flags=(FUNC,)) == ["spec changed nothing", "passes changed nothing", REASON]
    assert remarks(step("spec", changed=True), step("passes", changed=True), flags=(FUNC,)) == []


@pytest.mark.parametrize("name", ["a|b`c`", "*bold* <b>", "[x](http://e.org)", "two\nlines"])
def test_a_plugin_of_any_name_breaks_no_table(full_run: Run, name: str) -> None:
    def shown_with(effect: PluginEffect) -> str:
        builds = tuple(replace(build, effects=(effect,)) for build in full_run.builds)
        return str(PARSER.render(render(replace(full_run, builds=builds), "markdown", full=True)))

    odd, plain = shown_with(PluginEffect(name=name, matched=2, changed=True)), shown_with(rewrite(2))
    assert re.findall(r"<(\w+)", odd) == re.findall(r"<(\w+)", plain)
    assert f"{' '.join(name.split())} matched 2 places" in unescape(odd).replace("\u200b", "")
