"""Second opinions that cannot be had: why, and that the compiler is not asked in vain again."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cache import cache_root
from harness.models.bench_folder import BenchFolder
from harness.process import Limits
from harness.records.run import Build
from harness.stages.second_opinion import SecondPath
from harness.verify import Runnable
from tests.builders import a_model, make_case
from tests.fakes.fake_toolchain import calls, make_fake_toolchain
from tests.stages.conftest import UnderWay

STOCK = make_case()


class Asking:
    """A second path whose compiler does what it is told."""

    def __init__(self, under_way: UnderWay, folder: Path) -> None:
        self._artifact, self._folder = under_way.artifact, folder
        self._artifact.mlir.write_text("module {}")
        self.compiled = 0

    def why(self, check: str, *flags: str, seconds: float = 60.0) -> str:
        """Why there is none for a program; the compiler has these flags."""
        toolchain = make_fake_toolchain(self._folder / "tools", always={"iree-compile": flags})
        runnable = Runnable(
            case=STOCK,
            build=Build(case=STOCK.name, command=(), cache_key="", module_sha256="aa"),
            artifact=self._artifact,
            bench=BenchFolder(folder=self._folder, inputs=(), parameters=()),
            toolchain=toolchain,
            cpus=None,
        )
        limits = Limits(seconds=seconds)
        model = a_model(check=check)
        second = SecondPath(models={"net": model}, scratch=self._folder, compile_limits=limits, call_limits=limits)
        before = len(calls(toolchain))
        assert second(runnable) is None
        self.compiled = sum(call.tool == "iree-compile" for call in calls(toolchain)[before:])
        return second.why_none[STOCK.name]


@pytest.fixture
def asking(under_way: UnderWay, tmp_path: Path) -> Asking:
    return Asking(under_way, tmp_path)


def test_a_compile_that_failed_is_not_tried_again(asking: Asking) -> None:
    why = asking.why("vmvx", "--fake-exit=3")
    assert (why, asking.compiled) == ("IREE's interpreter VMVX: iree-compile exited with status 3", 1)
    assert asking.why("vmvx", "--fake-exit=3") == why
    assert asking.compiled == 0


def test_one_that_ran_out_of_time_is_tried_with_more_of_it(asking: Asking) -> None:
    why = asking.why("vmvx", "--fake-sleep=60", seconds=0.5)
    assert why.startswith("IREE's interpreter VMVX: iree-compile ran past its limit of 0.5 s")
    assert (asking.why("vmvx", "--fake-exit=3", seconds=0.4), asking.compiled) == (why, 0)
    asking.why("vmvx", "--fake-exit=3", seconds=0.6)
    assert asking.compiled == 1


def test_one_that_was_killed_is_tried_again(asking: Asking) -> None:
    asking.why("vmvx", "--fake-signal=KILL")
    assert not (cache_root() / "opinions").exists()
    asking.why("vmvx", "--fake-signal=KILL")
    assert asking.compiled == 1


def test_both_ways_say_why(asking: Asking) -> None:
    assert asking.why("auto", "--fake-exit=3").count("iree-compile exited with status 3") == 2


def test_where_none_is_asked_for(asking: Asking, under_way: UnderWay) -> None:
    assert asking.why("none") == 'the suite says check = "none"'
    under_way.artifact.mlir.write_text("tensor<4xbf16>")
    assert asking.why("auto").startswith("its program has values of f16 or bf16")
    assert asking.compiled == 0
