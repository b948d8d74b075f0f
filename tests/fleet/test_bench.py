"""A fleet as the place of a run: what it is planned for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import Interrupted, RunError
from harness.fleet.bench import FleetBench
from harness.fleet.connection import Offers
from harness.stages import run as stages_run
from harness.stages.options import RunOptions
from harness.stages.run import run_suite
from harness.store.run_directory import load_run
from tests.builders import Notes, make_artifact
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.fleet.hosts import make_offer

_SUITE = """\
name = "small"
baseline = "stock"
[models.a]
mlir = "a.mlir"
function = "main"
inputs = [{ shape = [4] }]
[variants.stock]
[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
compile_flags = ["--iree-hal-target-device=local"]
hosts = "each"
[measure]
budget_s = 1
generations = 2
"""


def a_bench(*names: str) -> FleetBench:
    offers = {name: make_offer(name) for name in names}
    fleet: Any = SimpleNamespace(
        access=SimpleNamespace(address="tls://bench:8786"),
        await_host=lambda _: Offers(usable=offers, refused={}),
    )
    return FleetBench(fleet)


def test_a_run_goes_on_with_the_hosts_that_it_was_planned_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.mlir").write_text("module {}\n")
    (tmp_path / "suite.toml").write_text(_SUITE)
    artifact = replace(make_artifact(tmp_path / "a.mlir", arguments=()), name="a")
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
    with pytest.raises(RunError, match=r"a/stock@cpu.elm cannot go on now \(.*\); start its host again, or give such"):
        run_suite(options, Notes(), toolchains, a_bench("ash", "oak"))
    with pytest.raises(Interrupted, match="interrupted; go on with"):
        run_suite(replace(options, skip=("*@cpu.elm*",)), Notes(), toolchains, a_bench("ash", "oak"))
