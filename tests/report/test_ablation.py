"""An ablation's Markdown: one table for each model and device, one row for each way to have the plugin's switches."""

from __future__ import annotations

from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from syrupy.assertion import SnapshotAssertion

from harness.records.run import Build, Failure, IrCounts, PluginEffect, Run
from harness.report.ablation import render_ablation
from harness.report.table import build_report
from tests.report.made import compile_command, make_build, make_case, make_check, make_header, make_rounds

REFUSED = Failure(
    stage="compile",
    message="plugin fold raised ValueError: no place for | a fold",
    stderr="Traceback (most recent call last):\nValueError: no place for | a fold\n",
)


@pytest.fixture
def ablated_run() -> Run:
    """A plugin of two switches, of which one matches nothing, on a model where both fail together and on another."""
    steps = ("without", "none", "only-fold", "only-relu", "all")
    cases = {
        (model, step): make_case(
            model, step, baseline=step == "without", plugins=() if step == "without" else ("fold",)
        )
        for model in ("mlp", "rdb")
        for step in steps
    }
    folded = ("only-fold", "all")
    code = {"without": "57", "none": "57", "only-fold": "fa", "only-relu": "57", "all": "fa"}
    builds = [
        make_build(
            case,
            code=code[step] if model == "mlp" else {"57": "fa", "fa": "1b"}[code[step]],
            dispatches=3 if step in folded else 4,
            copies=0,
            transient=4096,
            effects=()
            if step == "without"
            else (PluginEffect(name="fold", matched=int(step in folded), changed=step in folded),),
        )
        for (model, step), case in cases.items()
        if (model, step) != ("mlp", "all")
    ]
    failed = cases["mlp", "all"]
    builds.append(Build(case=failed.name, command=compile_command(failed), cache_key="f", failure=REFUSED))
    rounds = [
        one
        for model in ("mlp", "rdb")
        for one in make_rounds(
            f"{model}@local-sync",
            {cases[model, "without"].name: 2.4e6, cases[model, "only-fold"].name: 1.9e6},
            generations=5,
            rounds=20,
        )
    ]
    return Run(
        header=make_header(
            tuple(cases.values()),
            baseline="without",
            suite_name="mlp-ablate-fold",
            suite_description="What each option of fold does: added to stock alone, left out alone, and all",
        ),
        builds=tuple(builds),
        ir=tuple(
            IrCounts(case=case.name, counts={"input/linalg.*": 9, "flow/tensor.empty": 1 if step in folded else 6})
            for (_, step), case in cases.items()
            if case is not failed
        ),
        checks=tuple(
            make_check(case, cases[model, "without"].name, max_absolute=0.0, max_relative=0.0)
            for (model, step), case in cases.items()
            if step != "without" and case is not failed
        ),
        rounds=tuple(rounds),
        finished=True,
    )


def shown(run: Run) -> str:
    return render_ablation(build_report(run))


def test_what_each_option_does(ablated_run: Run, snapshot: SnapshotAssertion) -> None:
    assert shown(ablated_run) == snapshot


def test_code_that_another_row_has_is_named_by_its_variant_and_with_its_model_where_that_is_another(
    ablated_run: Run,
) -> None:
    rows = [line.split("|")[1:-1] for line in shown(ablated_run).splitlines() if line.startswith("| ")]
    same = [(row[0].strip(), row[-1].strip()) for row in rows if row[0].strip() not in ("variant", "---")]
    assert same == [
        ("without", ""),
        ("none", "without"),
        ("only-fold", ""),
        ("only-relu", "without"),
        ("all", "failed at compile"),
        ("without", "mlp/only-fold@local-sync"),
        ("none", "mlp/only-fold@local-sync"),
        ("only-fold", ""),
        ("only-relu", "mlp/only-fold@local-sync"),
        ("all", "only-fold"),
    ]


def test_without_a_failure_or_equal_code_there_is_no_word_of_them(ablated_run: Run) -> None:
    builds = tuple(
        replace(build, module_sha256=f"{number:064}", failure=None) for number, build in enumerate(ablated_run.builds)
    )
    text = shown(replace(ablated_run, builds=builds))
    assert "same code as" not in text
    assert "\n- " not in text


@pytest.mark.parametrize("name", ["full_run", "nasty_run", "unfinished_run", "one_generation_run"])
def test_any_run_can_be_shown_so(name: str, request: pytest.FixtureRequest) -> None:
    run: Run = request.getfixturevalue(name)
    text = shown(run)
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    assert sum(token.type == "tr_open" for token in tokens) == len(run.header.cases) + len(
        {case.group for case in run.header.cases}
    )
    assert not any(token.type.startswith("html") for token in tokens)
    assert "\x1b" not in text
