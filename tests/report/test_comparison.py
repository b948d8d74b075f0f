"""What a comparison comes to: its exit status, its sentence, what to do next; as JSON and as CSV."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.compare.pairs import BASE_TOO
from harness.errors import ExitCode, RunError
from harness.records.comparison import VERDICTS, Comparison, Row, Verdict
from harness.report import render
from harness.report.comparison import Busy, busy_line, comparison_exit_code, headline, medians_sentence, next_steps
from harness.store.folders import COMPARISON
from tests.report.builders import make_comparison, make_full_comparison, make_nasty_comparison, make_row, make_timed

SAME = make_row("m/same@d")
TIMED = make_timed("a/b@c", 1.0, 1.0, "unchanged")
UNSURE = make_timed("m/v@d", 1.0, 1.02, "inconclusive", seconds=14.3)


def row(verdict: Verdict, metric: str = "latency", **facts: Any) -> Row:
    return make_row("m/v@d", metric, verdict, **facts)


# --- The exit status ---


@pytest.mark.parametrize(
    ("rows", "code", "strict"),
    [
        # Each verdict of a latency alone; nothing at all, or what is compared with nothing, is not fine.
        ([], ExitCode.CASE_FAILED, None),
        ([row("regressed")], ExitCode.REGRESSION, None),
        ([row("unchanged")], ExitCode.OK, None),
        ([row("inconclusive")], ExitCode.OK, ExitCode.INCONCLUSIVE),
        ([row("new")], ExitCode.CASE_FAILED, None),
        ([SAME, row("new")], ExitCode.OK, None),
        # A gate excuses a regression; an improvement may violate one. Other figures are what their gates make of them.
        ([SAME, row("regressed", gate="passed")], ExitCode.OK, None),
        ([SAME, row("regressed", "compile-time")], ExitCode.REGRESSION, None),
        ([row("improved", gate="violated")], ExitCode.REGRESSION, None),
        ([SAME, row("regressed", "copies")], ExitCode.OK, None),
        ([SAME, row("regressed", "copies", gate="violated")], ExitCode.REGRESSION, None),
        # A regression comes before a failure, and a failure before what is not decided, which is about latencies.
        ([row("failed"), make_row("m/w@d", verdict="regressed")], ExitCode.REGRESSION, None),
        ([row("inconclusive"), make_row("m/w@d", verdict="missing")], ExitCode.CASE_FAILED, None),
        ([SAME, row("inconclusive", "compile-time")], ExitCode.OK, None),
        # Controls never count.
        ([SAME, row("regressed", gate="violated", control=True)], ExitCode.OK, None),
        ([row("unchanged", control=True)], ExitCode.CASE_FAILED, None),
    ],
)
def test_exit_status(rows: list[Row], code: ExitCode, strict: ExitCode | None) -> None:
    comparison = make_comparison(rows)
    assert comparison_exit_code(comparison, strict=False) == code
    assert comparison_exit_code(comparison, strict=True) == (code if strict is None else strict)


# --- In sentences ---


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            make_full_comparison().rows,
            "Outputs differ in 1 case; 1 gate violated; 2 regressions (1 within its gate), 1 improvement, 1 failed, "
            "1 missing, 1 inconclusive, 2 unchanged, 2 identical, 1 new; compilation times: 1 regression; "
            "4 other figures changed.",
        ),
        ([], "No latency was compared."),
        # A case that failed twice is one failure; many rows may violate one gate; a control is never counted.
        ([row("failed"), row("failed", "compile-time")], "No latency was compared, 1 failed."),
        (
            [row("failed"), make_row("m/w@d", verdict="failed", reason=f"it crashed{BASE_TOO}")],
            "No latency was compared, 2 failed (1 in the base too).",
        ),
        (
            [make_row(f"m/v{index}@d", "copies", "regressed", gate="violated") for index in range(3)],
            "Gates violated in 3 rows; no latency was compared; 3 other figures changed.",
        ),
        (
            [TIMED, *(make_timed(f"m/v{n}@d", 360.0, 2.0 * n, "inconclusive", lacked_time=True) for n in (1, 2))],
            "2 rows differ up to 4.0-fold and could not be decided for want of time, 1 unchanged.",
        ),
        (
            [TIMED, replace(TIMED, verdict="regressed", control=True, gate="violated")],
            "No regression or improvement, 1 unchanged.",
        ),
    ],
)
def test_everything_is_counted_with_gates_first(rows: list[Row], sentence: str) -> None:
    assert headline(make_comparison(rows)) == sentence


def alone(*taken: float) -> list[Busy]:
    return [Busy(f"{number}", each, own=True) for number, each in enumerate(taken)]


@pytest.mark.parametrize(
    ("known", "line"),
    [
        ([], ""),
        (
            alone(0.11, 0.4, 0.12, 0.3, 0.2),
            "the machine was busy: other processes took 23 % of the time of what was timed (40 % of 1, 30 % of 3, 20 % "
            "of 4); the ratios leave that out, the times of a call have it in them",
        ),
        # Threads of one device wait for each other on a quiet machine too.
        (
            [Busy("m", 0.065, own=False)],
            "the machine was quiet: threads of what was timed waited for a core 6.5 % of the time, for other processes "
            "or for each other",
        ),
        (
            [*alone(0.001), Busy("m", 0.065, own=False)],
            "the machine was quiet: other processes took 0.1 % of the time of what was timed on one thread; the ratios "
            "of 1 of 2 rows leave that out, the times of a call have it in them",
        ),
    ],
)
def test_how_busy_the_machine_was_is_said_in_words(known: list[Busy], line: str) -> None:
    assert busy_line(known) == line


def test_medians_that_contradict_their_ratio_have_a_word_of_why() -> None:
    figures = {"a": (100.0, 103.0, 1.02), "b": (100.0, 100.4, 0.998), "c": (None, 2.0, 0.5), "d": (1, 2, None)}
    odd = {"e": (100.0, 102.0, 0.97), "f": (100.0, 97.0, 1.03)}
    agree, rows = (
        [make_row(case, base_value=base, head_value=head, ratio=ratio) for case, (base, head, ratio) in each.items()]
        for each in (figures, figures | odd)
    )
    assert medians_sentence(agree) == ""
    assert medians_sentence(rows).startswith("The medians of e and 1 more say the opposite of the ratio: ")


# --- What to do next ---


COMPARE = "harness compare a b"
LARGE = make_timed("m/large@d", 1.0, 1.3, "regressed", repro=("again", "what was compiled"))
LITTLE = make_timed("m/little@d", 1.0, 1.1, "regressed")
ALLOWED = make_timed("m/allowed@d", 1.0, 1.9, "regressed", gate="passed")
COMPILED = make_timed("m/v@d", 900, 1.3, "regressed", metric="compile-time", repro=("compile",))
CORRECT = ("correct what regressed, or say here why it is worth it", "")
OPEN = "decide 1 inconclusive row"
TWICE = f"{OPEN} with twice the time"
FIRST_LOOK = "the time that a first look takes"


@pytest.mark.parametrize(
    ("rows", "command", "steps"),
    [
        # Recorded numbers are decided by measuring.
        ([UNSURE], f"{COMPARE} --no-remeasure", [(f"{OPEN} by measuring both sides again, side by side", COMPARE)]),
        # Open rows get twice the time; a row that no cap had room for a higher one.
        ([UNSURE], COMPARE, [(TWICE, f"{COMPARE} --row-budget 30")]),
        ([UNSURE], f"{COMPARE} --row-budget=15", [(TWICE, f"{COMPARE} --row-budget 30")]),
        (
            [make_timed("m/v@d", 9e9, 7.9, "inconclusive", lacked_time=True), UNSURE],
            f"{COMPARE} --row-cap 300",
            [("decide 1 row that differs plainly with twice the time", f"{COMPARE} --row-cap 600")],
        ),
        # Compile times have a budget of their own; it is enough for a first look.
        (
            [replace(COMPILED, verdict="inconclusive", seconds=10.0, generations=2)],
            COMPARE,
            [(f"decide 1 inconclusive compilation time with {FIRST_LOOK}", f"{COMPARE} --compile-budget 40")],
        ),
        # The regression to repeat is the largest that no gate allows, and one of a latency where there is any.
        ([LITTLE, LARGE, ALLOWED], "", [CORRECT, ("repeat the largest regression, m/large@d", "again")]),
        ([replace(LARGE, repro=())], "", [CORRECT]),
        ([COMPILED], "", [CORRECT, ("repeat the largest regression of a compilation time, m/v@d", "compile")]),
        (
            [SAME, make_timed("m/w@d", 1.0, 1.1, "regressed", control=True)],
            "",
            [("find out how often this machine is wrong", "harness selfcheck suites/esrgan.toml")],
        ),
        (
            [SAME, row("regressed", "copies", gate="violated")],
            "",
            [("bring 1 row back within the gates, or move these in suites/esrgan.toml", "")],
        ),
    ],
)
def test_what_to_do_next(rows: list[Row], command: str, steps: list[tuple[str, str]]) -> None:
    settings = {"row_budget_s": 15.0, "row_cap_s": 300.0, "compile_budget_s": 15.0, "first_look": 8}
    mode = "recorded" if "--no-remeasure" in command else "remeasured"
    comparison = make_comparison(rows, mode=mode, command=tuple(command.split()), settings=settings)
    assert [(step.text, step.command) for step in next_steps(comparison)] == steps


# --- For other programs ---


def document(comparison: Comparison) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(render(comparison, "json"))
    return read


def test_names_in_json_stay(snapshot: SnapshotAssertion) -> None:
    found = document(make_full_comparison())
    records = (found, found["base"], found["machine"], found["rows"][0], found["tool_output"][0], found["means"][0])
    assert [" ".join(record) for record in records] == snapshot
    assert set(found["summary"]) == set(VERDICTS)


@pytest.mark.parametrize("make", [make_full_comparison, make_nasty_comparison])
def test_what_is_kept_reads_as_what_was_found(make: Callable[[], Comparison]) -> None:
    comparison = make()
    assert COMPARISON.parse(json.dumps(document(comparison))) == comparison


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is damaged;"),
        ('{"schema_version": 1}', r"is damaged \(id: Field required\)"),
        ('{"schema_version": 1, "id": "\\ud800"}', "is damaged;"),  # half a surrogate pair
        (render(make_comparison([TIMED]), "json").replace("0.995", "1e999"), r"is damaged \(rows.0.ci_low: "),
    ],
)
def test_what_is_no_comparison_is_told_in_a_sentence(text: str, says: str) -> None:
    with pytest.raises(RunError, match=rf"^kept/comparison.json: {says}.*make the comparison again"):
        COMPARISON.parse(text, "kept/comparison.json")
