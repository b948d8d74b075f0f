"""What a user may call a side, and that everything that can be wrong with it is told before anything takes long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    toolchains_here,
)
from harness.errors import HarnessError, RunError, ToolchainError, UsageError
from harness.records.comparison import SelfcheckFacts, Verdict
from harness.store.run_directory import RunDirectory
from harness.toolchain import Toolchain
from tests.builders import make_header, make_row
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
        return tuple(replace(HERE, version=version.removeprefix("iree==")) for version in versions)

    monkeypatch.setattr(sides_module, "get_toolchains", get)
    return asked


@pytest.fixture
def base(tmp_path: Path) -> str:
    return a_run(tmp_path, "base")


def a_run(folder: Path, name: str) -> str:
    with RunDirectory.create(folder, replace(make_header(), id=name)) as directory:
        return str(directory.path)


def resolved(*sides: str, suite: Path | None = None) -> tuple[list[tuple[str, str]], list[tuple[Path, str]]]:
    """Label and run of each side, and the suites that were compiled, with the release."""
    compiled: list[tuple[Path, str]] = []

    def compile_suite(suite: Path, toolchain: Toolchain) -> Path:
        compiled.append((suite, toolchain.version))
        folder = next(Path(side).parent for side in sides if not is_toolchain(side))
        return Path(a_run(folder, f"made by {toolchain.version}"))

    found = resolve((sides[0], sides[1]), suite, compile_suite, lambda _: None)
    return [(side.label, side.run.header.id) for side in found], compiled


def message(error: type[HarnessError], function: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(error) as caught:
        function(*arguments)
    return str(caught.value)


# --- Two of them ---


def test_sides_come_by_position_then_as_toolchains_in_this_order() -> None:
    assert require_two(["a", "b"], [], None) == ("a", "b")
    assert require_two(["a"], ["3.12.0"], None) == ("a", "iree==3.12.0")
    assert require_two([], ["3.12.0", "iree==3.13.0"], None) == ("iree==3.12.0", "iree==3.13.0")
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


# --- As runs ---


def test_two_run_directories(base: str, tmp_path: Path) -> None:
    head = a_run(tmp_path, "head")
    assert resolved(base, head) == ([(base, "base"), (head, "head")], [])


def test_the_same_run_twice_however_it_is_written(base: str) -> None:
    for again in (base, f"{base}/", f"{Path(base).parent}/./base"):
        assert message(UsageError, resolved, base, again) == (
            f"{base} is given twice; `harness compare --within {base}` compares its variants"
        )


@pytest.mark.parametrize(("suite", "compiled"), [(Path("x.toml"), "x.toml"), (None, "suites/small.toml")])
def test_a_toolchain_is_compiled_now_for_the_suite_given_or_for_that_of_the_other_side(
    suite: Path | None, compiled: str, base: str, installed: list[str]
) -> None:
    assert resolved(base, "iree==3.12.0", suite=suite) == (
        [(base, "base"), ("iree==3.12.0", "made by 3.12.0")],
        [(Path(compiled), "3.12.0")],
    )


def test_nothing_is_installed_before_what_it_is_for_is_known(base: str, installed: list[str]) -> None:
    assert message(UsageError, resolved, "iree==3.12.0", "iree==3.13.0") == (
        "two toolchains are compared on a suite; give one with --suite, as in --suite suites/x.toml"
    )
    nowhere = f"{base}/nowhere"
    assert "is not a run directory" in message(RunError, resolved, "iree==3.12.0", nowhere)
    assert installed == []


# --- Their toolchains here ---


def test_the_toolchains_of_both_sides_each_once(installed: list[str]) -> None:
    base = a_side(a_case(), toolchains=[replace(TOOLCHAIN, version="3.12.0")])
    head = a_side(a_case(), toolchains=[replace(TOOLCHAIN, version=version) for version in ("3.12.0", "3.13.0")])
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
OTHER = {**MACHINE, "id": "0123456789ab", "virtual": False}
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
A_GPU = {"devices": {"cpu": "a GPU"}}
UNKNOWN = "whether results/base and results/head were measured on one machine is not known"


def a_host(label: str, *, machine: dict[str, Any] = MACHINE, **environment: dict[str, Any]) -> Side:
    return a_side(a_case(), label=label, environment={"machine": machine, "cpu": CPU, **environment})


@pytest.mark.parametrize(
    ("base", "head", "sentence"),
    [
        (
            {},
            {"machine": OTHER},
            "results/base and results/head were measured on different machines (machine 3f2a91c04b7e (virtual), a "
            "processor, 2 cores, Debian GNU/Linux 12; machine 0123456789ab, a processor, 2 cores, Debian GNU/Linux 12)",
        ),
        ({}, {"machine": {}}, UNKNOWN),
        ({"machine": {}}, {"machine": {}}, UNKNOWN),
        (
            A_GPU,
            {"devices": {"cpu": "another GPU"}},
            "device cpu was a GPU in results/base and another GPU in results/head",
        ),
        (A_GPU, {}, "device cpu was a GPU in results/base and not there in results/head"),
    ],
)
def test_recorded_numbers_of_other_machines_or_devices_are_compared_only_where_that_is_asked_for(
    base: dict[str, Any], head: dict[str, Any], sentence: str
) -> None:
    sides = a_host("results/base", **base), a_host("results/head", **head)
    pairs = pair_runs(*sides)
    with pytest.raises(UsageError) as caught:
        require_comparable(*sides, pairs, across_hosts=False)
    assert str(caught.value) == (
        f"{sentence}; measure both on one machine, or give --across-hosts to compare them all the same"
    )
    require_comparable(*sides, pairs, across_hosts=True)


def test_one_machine_may_have_got_another_device_that_no_compared_case_uses() -> None:
    base, head = (a_host(name, devices={"gpu": name}) for name in ("results/base", "results/head"))
    require_comparable(base, head, pair_runs(base, head), across_hosts=False)


def test_a_run_is_on_the_machine_that_it_is_on() -> None:
    unknown = a_host("results/base", machine={})
    require_comparable(unknown, unknown, pair_runs(unknown, unknown), across_hosts=False)


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
        replace(TOOLCHAIN, version="3.13.0", revision="89ece87b890123456789"),
        replace(TOOLCHAIN, version="3.12.0"),
    ]
    facts = side_facts(a_side(a_case(), toolchains=toolchains, environment={}), "results/base")
    assert (facts.label, facts.run, facts.suite) == ("results/base", "20261121-035012-small", "suites/small.toml")
    assert facts.toolchains == ("3.13.0 (89ece87b89)", "3.12.0")


def test_what_the_last_selfcheck_found() -> None:
    assert selfcheck_of({"selfcheck": CHECKED}) == SelfcheckFacts(**CHECKED)  # type: ignore[arg-type]
    assert selfcheck_of({}) is None
    assert selfcheck_of({"selfcheck": {}}) is selfcheck_of({"selfcheck": {"rows": "many"}}) is None


def test_controls_that_were_called_changed_are_counted() -> None:
    verdicts: list[Verdict] = ["regressed", "improved", "unchanged", "failed"]
    rows = [make_row("regressed"), *(make_row(verdict, control=True) for verdict in verdicts)]
    facts = machine_facts({"machine": MACHINE}, rows)
    assert (facts.controls, facts.controls_flagged, facts.selfcheck) == (4, 2, None)
