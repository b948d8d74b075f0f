"""What a run does next, on scripted hosts: refusals, workers that go, and runs that go on."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import Interrupted, PlaceGone, RunError, UsageError
from harness.fleet import dispatch, run
from harness.fleet.bench import FleetBench
from harness.fleet.connection import Offers
from harness.fleet.run import compile_limits
from harness.fleet.tasks import Answer
from harness.process import Limits
from harness.records.run import Failure, Lost, Run
from harness.stages import run as stages_run
from harness.stages.options import RunOptions
from harness.stages.prepare import Context, FailureNotes
from harness.stages.run import run_suite
from harness.store.run_directory import RunDirectory, load_run
from tests.builders import Notes, a_device, a_model, a_suite, a_variant, make_artifact, make_case, make_header
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.fleet.scripted import SUITE, Act, Died, Hangs, ScriptedFleet, dies, make_offer, pack_nothing, when
from tests.stages.conftest import UnderWay

_EPYC = {"a": "EPYC", "b": "EPYC"}
_MODELS = ("a", "b", "c", "d")
_FLAGS = {"stock": ("--iree-llvmcpu-target-cpu=host",), "fast": ("--fake-code=fast",)}
CASES = tuple(
    make_case(variant, model=model, compile_flags=flags) for model in _MODELS for variant, flags in _FLAGS.items()
)


class Asking(UnderWay):
    """A run in a folder, of eight cases."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder, self.notes, self.cases = folder, Notes(), CASES
        header = make_header(cases=CASES, settings={"budget_s": 2.4, "generations": 3, "seed": 0})
        self.directory = RunDirectory.create(folder / "results", header)
        variants = [a_variant(name, *flags) for name, flags in _FLAGS.items()]
        self.suite = a_suite(*variants, models=tuple(map(a_model, _MODELS)), devices=(a_device(),))
        self.artifacts = {name: replace(self.artifact, name=name, sha256=name * 64) for name in _MODELS}

    def now(self) -> Context:
        """The run, as far as it is."""
        context = self.context(self.cases, self.suite, self.run, self.artifacts)
        return replace(context, progress=self.notes, failures=FailureNotes(self.notes))


@pytest.fixture
def asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asking:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(dispatch, "RETURN_S", 3.0)
    monkeypatch.setattr(run, "pack", pack_nothing)
    return Asking(tmp_path)


def on_fleet(asking: Asking, cpus: Mapping[str, str], act: Act = lambda *_: None) -> tuple[Run, ScriptedFleet]:
    """The run, once all is done that is left of it."""
    with ScriptedFleet(asking.toolchain, dict(cpus), act) as fleet:
        FleetBench(fleet).run(asking.now(), asking.folder)
    return asking.run, fleet


def stopped_after(asking: Asking, cpus: Mapping[str, str], words: str, number: int) -> Run:
    """The run, stopped when hosts have been asked for so many things that begin with these words."""

    def stop(fleet: ScriptedFleet, _: str, __: str) -> Answer | None:
        if sum(asked.startswith(words) for _, asked in fleet.asked) > number:
            raise PlaceGone("stopped")
        return None

    with pytest.raises(PlaceGone):
        on_fleet(asking, cpus, stop)
    return asking.run


def test_groups_are_shared_out_and_progress_counts_each_step_once(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    totals, done = [], []
    monkeypatch.setattr(asking.notes, "stage", lambda title, total: totals.append(total) if title == "Fleet" else None)
    monkeypatch.setattr(
        asking.notes, "step", lambda text, advance=1: done.append(advance) if " " in text or "/" in text else None
    )
    asking.cases = (*CASES, replace(CASES[0], name="a/same@cpu", baseline=False))
    found, fleet = on_fleet(asking, _EPYC)
    assert {timed.host for timed in found.rounds} == {"a", "b"}
    assert all(timed.host == found.host_of_group[timed.group] for timed in found.rounds)
    assert len({(timed.group, timed.generation) for timed in found.rounds}) == len(found.rounds) == 4 * 3
    assert sum(done) == totals[0]
    limits = {takes[0].limits for takes, (_, words) in zip(fleet.taken, fleet.asked, strict=True) if "compile" in words}
    assert limits == {Limits(seconds=900.0)}  # and as much memory as each host gives
    assert compile_limits(RunOptions(compile_memory_gib=2)).memory_bytes == 2**31


def test_what_a_host_cannot_do_another_does_and_it_is_not_asked_again(asking: Asking) -> None:
    found, fleet = on_fleet(asking, _EPYC, when("check", "a", lambda _: Answer(trouble="it has no network")))
    assert {timed.host for timed in found.rounds} == {"b"}
    checks = [words for host, words in fleet.asked if host == "a" and words.startswith("check")]
    assert len(checks) == len(set(checks))
    assert any(line.endswith("moves to b: a: it has no network") for line in asking.notes.lines)


def test_where_no_host_can_do_it_the_cases_fail_with_each_hosts_reason(asking: Asking) -> None:
    def act(fleet: ScriptedFleet, host: str, words: str) -> Answer | None:
        return Answer(trouble=f"{host} is tired") if words in ("compile b/fast@cpu", "measure a@cpu") else None

    found, _ = on_fleet(asking, _EPYC, act)
    (failed,) = [build for build in found.builds if build.failure is not None]
    assert failed.failure is not None
    assert sorted(failed.failure.message.split("; ")) == [
        "a: a is tired",
        "b: b is tired",
        "no other host of the fleet can do it",
    ]
    assert {lost.case for lost in found.lost} == {"a/stock@cpu", "a/fast@cpu"}
    assert "no other host of the fleet can do it" in found.lost[0].failure.message
    assert {timed.group for timed in found.rounds} == {"b@cpu", "c@cpu", "d@cpu"}


def test_a_group_fails_over_which_a_worker_dies_again_and_again(asking: Asking) -> None:
    found, fleet = on_fleet(asking, {"a": "EPYC"}, when("measure c@cpu", "a", dies("a", comes_back_as="EPYC")))
    assert {lost.case for lost in found.lost} == {"c/stock@cpu", "c/fast@cpu"}
    assert found.lost[0].failure.message == "a: its worker ended 3 times while it did this"
    assert fleet.asked.count(("a", "measure c@cpu")) == 3
    assert {timed.group for timed in found.rounds} >= {"a@cpu", "b@cpu", "d@cpu"}
    assert "a is back" in asking.notes.lines


def test_a_host_that_does_not_come_to_an_end_gets_nothing_more(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "limit_s", lambda *_: 1.0)

    def hang(_: ScriptedFleet) -> Answer:
        raise Hangs

    found, _ = on_fleet(asking, _EPYC, when("measure", "a", hang))
    assert {timed.host for timed in found.rounds} == {"b"}
    assert any(
        line.startswith("a does not come to an end with measure") and "nothing more until" in line
        for line in asking.notes.lines
    )


def test_a_case_that_is_lost_is_in_no_later_task_of_its_group(asking: Asking) -> None:
    lost = (Lost(case="a/fast@cpu", generation=0, failure=Failure(stage="measure", message="it crashed")),)
    act = when("measure a@cpu", "h", lambda _: Answer(value=((), None, [lost])), times=1)
    _, fleet = on_fleet(asking, {"h": "EPYC"}, act)
    asked = zip(fleet.asked, fleet.taken, strict=True)
    variants = [[case.variant for case in takes[0].cases] for (_, words), takes in asked if words == "measure a@cpu"]
    assert variants == [["stock", "fast"], ["stock"], ["stock"]]


def test_a_compile_waits_for_the_one_host_that_may_do_it(asking: Asking) -> None:
    """Hosts do not say what `host` means to them, so that only their CPU makes their modules."""

    async def come_back(fleet: ScriptedFleet) -> None:
        await asyncio.sleep(1.5)
        fleet.come("a", "EPYC", 2)

    def go(fleet: ScriptedFleet) -> Answer | None:
        asyncio.ensure_future(come_back(fleet))  # noqa: RUF006 (it ends before the run)
        return dies("a")(fleet)

    found, fleet = on_fleet(asking, {"a": "EPYC", "b": "Xeon"}, when("compile", "a", go, times=1))
    assert not any(build.failure for build in found.builds)
    assert "its host a has gone, and may come back" in fleet.waits


def test_a_group_goes_on_where_the_cpu_is_that_its_modules_are_made_for(asking: Asking) -> None:
    made = stopped_after(asking, {"a": "EPYC", "b": "Xeon"}, "compile", len(CASES) - 1)
    assert set(made.host_of_group.values()) == {"a", "b"}
    found, _ = on_fleet(asking, {"c": "EPYC", "d": "Xeon"})
    same = {"a": "c", "b": "d"}
    groups = {case.group for case in CASES for build in made.builds if build.case == case.name}
    assert groups
    assert {group: found.host_of_group[group] for group in groups} == {
        group: same[made.host_of_group[group]] for group in groups
    }


def test_other_machines_under_the_names_of_hosts_measure_nothing_of_their_groups(asking: Asking) -> None:
    before = stopped_after(asking, _EPYC, "measure", len(CASES))
    assert {timed.host for timed in before.rounds} == {"a", "b"}
    with pytest.raises(PlaceGone, match="all hosts have gone; start one"):
        on_fleet(asking, {"a": "Xeon", "b": "Xeon"})
    assert not asking.run.lost
    found, fleet = on_fleet(asking, {"a": "Xeon", "b": "EPYC"})
    assert {timed.host for timed in found.rounds} == {host for host, _ in fleet.asked} == {"b"}
    assert any(line.startswith("a is another machine than before, Xeon") for line in asking.notes.lines)


def test_a_fleet_that_has_gone_ends_the_run_with_how_to_go_on(asking: Asking) -> None:
    def go(fleet: ScriptedFleet) -> Answer | None:
        fleet.client.status = "closed"
        raise Died

    said = "the scheduler has gone; what has arrived is kept: go on with `harness run --resume "
    with pytest.raises(PlaceGone, match=said):
        on_fleet(asking, _EPYC, when("measure", "a", go))
    assert asking.run.checks


# --- What a run is planned for ---

_ON_EACH = """
hosts = "each"
[variants.stock]
[measure]
budget_s = 1
generations = 2
"""


def a_bench(*names: str) -> FleetBench:
    offers = {name: make_offer(name) for name in names}
    fleet: Any = SimpleNamespace(access="tls://bench:8786", await_host=lambda _: Offers(usable=offers, refused={}))
    return FleetBench(fleet)


def test_a_toolchain_of_ones_own_that_no_host_has_is_refused_before_anything_starts(tmp_path: Path) -> None:
    own = replace(make_fake_toolchain(tmp_path / "tools"), version="3.13.0+local.build.9f3a2c")
    how = "call `harness check suite.toml --toolchain FOLDER` on one, and start its worker again"
    with pytest.raises(UsageError) as caught:
        a_bench("ash").devices(replace(a_suite(), path=Path("suite.toml")), own)
    assert str(caught.value) == f"tls://bench:8786: no host has IREE 3.13.0+local.build.9f3a2c; {how}"


def test_a_run_goes_on_with_the_hosts_that_it_was_planned_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "models" / "a" / "model.mlir"
    program.parent.mkdir(parents=True)
    program.write_text("module {}\n")
    (tmp_path / "suite.toml").write_text(SUITE + _ON_EACH)
    artifact = replace(make_artifact(program, arguments=()), name="a")
    monkeypatch.setattr(stages_run, "materialize_models", lambda *_: {"a": artifact})
    monkeypatch.setattr(FleetBench, "run", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    options = RunOptions(tmp_path / "suite.toml", results=tmp_path / "results", certificates=Path("mine"))
    toolchains = [make_fake_toolchain(tmp_path / "tools")]
    with pytest.raises(Interrupted) as caught:
        run_suite(options, Notes(), toolchains, a_bench("ash", "elm"))
    (path,) = (path for path in (tmp_path / "results").iterdir() if path.is_dir())
    assert str(caught.value) == (
        f"interrupted; go on with `harness run --resume {path} --fleet tls://bench:8786 --certificates mine`"
    )
    assert {case.device for case in load_run(path).header.cases} == {"cpu.ash", "cpu.elm"}
    options = replace(options, resume=path)
    with pytest.raises(Interrupted, match="interrupted; go on with"):
        run_suite(options, Notes(), toolchains, a_bench("ash", "elm", "oak"))
    with pytest.raises(RunError, match=r"a/stock@cpu.elm cannot go on now \(.*\); start its host again, or begin"):
        run_suite(options, Notes(), toolchains, a_bench("ash", "oak"))
