"""What a user may call a side, and that everything that can be wrong with it is told before anything takes long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.compare import sides as sides_module
from harness.compare.pairs import Side, is_toolchain, pair_runs
from harness.compare.sides import (
    describe_machine,
    machine_facts,
    require_comparable,
    require_two,
    resolve,
    selfcheck_of,
    side_facts,
    suite_of,
    toolchains_here,
)
from harness.errors import ExitCode, HarnessError, RunError, ToolchainError, UsageError
from harness.records.comparison import Row, SelfcheckFacts
from harness.records.run import Header, ToolchainRecord
from harness.store.run_directory import RunDirectory
from harness.toolchain import Toolchain
from tests.builders import make_header
from tests.compare.runs import TOOLCHAIN, a_case, a_side

HERE = Toolchain(
    version="0.0.0",
    revision="",
    compiler_sha256=TOOLCHAIN.compiler_sha256,
    python=Path("python"),
    compiler_tools=Path(),
    runtime_tools=Path(),
)
TWO = "give two sides, as in `harness compare results/base results/head`"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every release is here at once; what was asked for, in order."""
    asked: list[str] = []

    def get(versions: Sequence[str], **_: object) -> tuple[Toolchain, ...]:
        asked.extend(versions)
        return tuple(replace(HERE, version=one.removeprefix("iree==")) for one in versions)

    monkeypatch.setattr(sides_module, "get_toolchains", get)
    return asked


def a_run(folder: Path, name: str, header: Header | None = None) -> str:
    with RunDirectory.create(folder, replace(header or make_header(), id=name)) as directory:
        return str(directory.path)


def never(suite: Path, toolchain: Toolchain) -> Path:
    raise AssertionError(f"{suite} was compiled")


def message(error: type[HarnessError], function: object, *arguments: object) -> str:
    assert callable(function)
    with pytest.raises(error) as caught:
        function(*arguments)
    return str(caught.value)


# --- Two of them ---


def test_sides_come_by_position_then_as_toolchains_in_this_order() -> None:
    assert require_two(["a", "b"], [], None) == ("a", "b")
    assert require_two(["a"], ["3.12.0"], None) == ("a", "iree==3.12.0")
    assert require_two([], ["3.12.0", "iree==3.13.0"], None) == ("iree==3.12.0", "iree==3.13.0")
    assert is_toolchain("iree==3.12.0")
    assert not is_toolchain("results/iree==3.12.0")


@pytest.mark.parametrize(
    ("sides", "toolchains"), [([], []), (["a"], []), (["a", "b", "c"], []), (["a", "b"], ["3.12.0"])]
)
def test_any_other_number_of_sides(sides: list[str], toolchains: list[str]) -> None:
    assert message(UsageError, require_two, sides, toolchains, None).startswith(TWO)


def test_within_a_run_there_are_no_other_sides() -> None:
    assert require_two([], [], Path("results/x")) == ("results/x", "results/x")
    assert message(UsageError, require_two, ["a"], ["3.12.0"], Path("results/x")) == (
        "--within results/x compares the variants of that run; leave out a, iree==3.12.0"
    )


# --- The suite of a toolchain ---


def test_a_toolchain_is_compiled_for_the_suite_given_or_for_that_of_the_other_side(tmp_path: Path) -> None:
    run = a_run(tmp_path, "base")
    assert suite_of((run, "iree==3.12.0"), None) == Path("suites/small.toml")
    assert suite_of((run, "iree==3.12.0"), Path("x.toml")) == Path("x.toml")
    assert suite_of((run, run), None) is None


def test_two_toolchains_need_a_suite() -> None:
    assert message(UsageError, suite_of, ("iree==3.12.0", "iree==3.13.0"), None) == (
        "two toolchains are compared on a suite; give one with --suite, as in --suite suites/x.toml"
    )


# --- As runs ---


def test_two_run_directories(tmp_path: Path) -> None:
    base, head = (a_run(tmp_path, name) for name in ("base", "head"))
    sides = resolve((base, head), None, never, lambda _: None)
    assert [(side.label, side.run.header.id) for side in sides] == [(base, "base"), (head, "head")]


def test_the_same_run_twice_however_it_is_written(tmp_path: Path) -> None:
    run = a_run(tmp_path, "base")
    for again in (run, f"{run}/", f"{tmp_path}/./base"):
        assert message(UsageError, resolve, (run, again), None, never, lambda _: None) == (
            f"{run} is given twice; `harness compare --within {run}` compares its variants"
        )


def test_a_toolchain_is_compiled_now(tmp_path: Path, installed: list[str]) -> None:
    base = a_run(tmp_path, "base")
    compiled: list[tuple[Path, str]] = []

    def compile_suite(suite: Path, toolchain: Toolchain) -> Path:
        compiled.append((suite, toolchain.version))
        return Path(a_run(tmp_path, f"made by {toolchain.version}"))

    sides = resolve((base, "iree==3.12.0"), Path("x.toml"), compile_suite, lambda _: None)
    assert [(side.label, side.run.header.id) for side in sides] == [(base, "base"), ("iree==3.12.0", "made by 3.12.0")]
    assert compiled == [(Path("x.toml"), "3.12.0")]


def test_nothing_is_compiled_before_the_other_side_is_known_to_be_a_run(tmp_path: Path, installed: list[str]) -> None:
    sides = ("iree==3.12.0", str(tmp_path / "nowhere"))
    assert "is not a run directory" in message(RunError, resolve, sides, Path("x.toml"), never, lambda _: None)


# --- Their toolchains here ---


def test_the_toolchains_of_both_sides_each_once(installed: list[str]) -> None:
    base = a_side(a_case(), toolchains=[replace(TOOLCHAIN, version="3.12.0")])
    head = a_side(a_case(), toolchains=[replace(TOOLCHAIN, version=one) for one in ("3.12.0", "3.13.0")])
    assert list(toolchains_here((base, head), lambda _: None)) == ["3.12.0", "3.13.0"]
    assert installed == ["3.12.0", "3.13.0"]


@pytest.mark.parametrize("wrong", ["base", "head"])
def test_either_side_may_be_of_another_build_of_the_same_release(wrong: str, installed: list[str]) -> None:
    other = replace(TOOLCHAIN, compiler_sha256="dd" * 32)
    sides = [
        a_side(a_case(), label=name, toolchains=[other if name == wrong else TOOLCHAIN]) for name in ("base", "head")
    ]
    assert message(ToolchainError, toolchains_here, sides, lambda _: None) == (
        f"{wrong}: IREE 0.0.0 here has another compiler than the run's; make the run again"
    )


# --- Machines ---

MACHINE = {"id": "3f2a91c04b7e", "virtual": True, "system": "Linux", "distribution": "Debian GNU/Linux 12"}
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


def a_host(label: str = "results/base", *, machine: dict[str, Any] = MACHINE, **environment: dict[str, Any]) -> Side:
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
    head = a_host("results/head", machine={**MACHINE, "id": "0123456789ab", "virtual": False})
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
        ({"machine": MACHINE, "cpu": CPU}, "machine 3f2a91c04b7e (virtual), a processor, 2 cores, Debian GNU/Linux 12"),
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
    facts = machine_facts({"machine": MACHINE}, rows)
    assert (facts.controls, facts.controls_flagged, facts.selfcheck) == (4, 2, None)
