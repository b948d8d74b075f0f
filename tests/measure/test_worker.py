"""The real worker: a real module on a real device, and what it says when it cannot do what it is asked."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.measure import Group, LoadableModule, Settings, measure_generation
from harness.measure.session import WORKER, WorkerDied, WorkerRefused, WorkerSession
from harness.measure.worker import Turns
from harness.records.run import Lost, Round
from harness.toolchain import Toolchain
from tests.builders import CPU_FLAGS, a_loadable
from tests.conftest import Compile
from tests.programs import ON_TWO_DEVICES, program

MATMUL = program("main a:32x32 b:32x32\ne = empty 32x32\nz = fill zero e\nc = matmul a b z\nreturn c")
NUMBERS = "func.func @main(%x: f32, %n: i32) -> (i32, f32) { return %n, %x : i32, f32 }"


@pytest.fixture
def matmul(real_toolchain: Toolchain, compile_text: Compile) -> LoadableModule:
    """A 32x32 matmul; a call takes some microseconds."""
    return loaded(real_toolchain, compile_text(MATMUL), np.eye(32, dtype=np.float32), np.eye(32, dtype=np.float32))


def loaded(toolchain: Toolchain, folder: Path, *values: Any, scalar: bool = False) -> LoadableModule:
    """A compiled program with arguments of these values."""
    arguments = []
    for position, value in enumerate(values):
        arguments.append({"file": str(folder / f"input{position}.npy"), **({"scalar": True} if scalar else {})})
        np.save(folder / f"input{position}.npy", value)
    return a_loadable("matmul", toolchain, module=folder / "module.vmfb", arguments=tuple(arguments))


def _session(
    toolchain: Toolchain, *, uri: str = "local-sync", flags: tuple[str, ...] = (), cpus: frozenset[int] | None = None
) -> WorkerSession:
    return WorkerSession(
        command=[*toolchain.python_command, "-u", str(WORKER)],
        opening={"uris": [uri], "flags": list(flags)},
        cpus=cpus,
        limit_s=60.0,
    )


def test_a_module_may_use_several_devices(real_toolchain: Toolchain, compile_text: Compile) -> None:
    devices = (f"--iree-hal-target-device={device}" for device in ("dev_a=local[0]", "dev_b=local[1]"))
    folder = compile_text(ON_TWO_DEVICES, *devices, *CPU_FLAGS[1:])
    module = loaded(real_toolchain, folder, np.eye(4, dtype=np.float32)[0])
    for second in ("local-sync", "local-task"):
        group = Group(name="m@two", uri="local-sync", more_uris=(second,), cases=(module,), cpus=None)
        items = list(measure_generation(group, 0, Settings(seconds=0.0)))
        assert items and all(isinstance(item, Round) for item in items)
    (lost,) = measure_generation(replace(group, more_uris=()), 0, Settings(seconds=0.0))
    assert isinstance(lost, Lost)
    assert "HAL device `dev_b` not found" in lost.failure.message


@pytest.mark.parametrize("uri", ["local-sync", "local-task"])
def test_turns_of_a_real_module_are_timed_in_the_order_asked_for(
    real_toolchain: Toolchain, matmul: LoadableModule, uri: str
) -> None:
    core = frozenset({max(os.sched_getaffinity(0))})
    with _session(real_toolchain, uri=uri, cpus=core) as worker:
        with pytest.raises(WorkerRefused, match="no function 'nope'"):
            worker.ask(op="load", case=matmul.name, **replace(matmul, function="nope").request())
        worker.ask(op="load", case=matmul.name, **matmul.request())  # it lives on
        worker.ask(op="load", case="again", **matmul.request())
        answer = worker.ask(op="round", turns=[["again", 3], ["matmul", 2], ["again", 1]], warm={"matmul": 4})
        short = worker.ask(op="calibrate", case="matmul", target_ns=1_000)
        long = worker.ask(op="calibrate", case="matmul", target_ns=20_000_000)
        assert os.sched_getaffinity(worker._child.pid) == core
    assert [(turn["case"], turn["calls"]) for turn in answer["turns"]] == [("again", 3), ("matmul", 2), ("again", 1)]
    assert all(turn["wall_ns"] > 0 for turn in answer["turns"])
    assert long["calls"] > short["calls"] >= 1


def test_numbers_are_passed_and_given_back_by_value(
    real_toolchain: Toolchain, compile_text: Compile, tmp_path: Path
) -> None:
    numbers = loaded(real_toolchain, compile_text(NUMBERS), np.float32(2.5), np.int32(3), scalar=True)
    with _session(real_toolchain) as worker:
        worker.ask(op="load", case=numbers.name, **numbers.request())
        assert worker.ask(op="outputs", case=numbers.name, folder=str(tmp_path))["outputs"] == 2
    outputs = [np.load(tmp_path / f"output{position}.npy") for position in range(2)]
    assert outputs == [3, 2.5]
    assert [output.dtype for output in outputs] == [np.int32, np.float32]


def test_inputs_that_the_function_refuses_are_told_in_irees_own_words_and_a_kill_is_noticed(
    real_toolchain: Toolchain, matmul: LoadableModule, tmp_path: Path
) -> None:
    np.save(tmp_path / "wrong.npy", np.zeros((3, 3), np.float32))
    wrong = {"file": str(tmp_path / "wrong.npy")}
    with _session(real_toolchain) as worker:
        worker.ask(op="load", case=matmul.name, **replace(matmul, arguments=(wrong, wrong)).request())
        with pytest.raises(WorkerRefused, match="shape dimension 0 mismatch; expected 32 but have 3"):
            worker.ask(op="calibrate", case="matmul", target_ns=1)
        os.kill(worker._child.pid, signal.SIGKILL)
        with pytest.raises(WorkerDied, match=r"was ended by SIGKILL .* while it was at work on matmul"):
            worker.ask(op="round", turns=[["matmul", 1]])


class Scripted:
    """Something whose calls take as long as is written, and from then on as the last one."""

    def __init__(self, *ns: int) -> None:
        self.made = 0
        self._ns = ns

    def call(self, calls: int) -> int:
        """What a batch takes."""
        first, self.made = self.made, self.made + calls
        return sum(self._ns[min(number, len(self._ns) - 1)] for number in range(first, self.made))

    def results(self) -> list[object]:
        """Nothing."""
        return []


def new_turns(tmp_path: Path) -> Turns:
    """As a worker has them that opens no device."""
    (tmp_path / "marker").touch()
    return Turns({"cpus": [], "marker": str(tmp_path / "marker")}, on_calling_thread=True)


def test_no_two_processes_put_their_buffers_at_the_same_places_of_a_page(tmp_path: Path) -> None:
    """Else one of two equal runtimes is slower in every generation, by where its buffers happen to begin."""
    held = {sum(map(len, new_turns(tmp_path)._shift)) for _ in range(20)}
    assert len(held) > 10
    assert {size % 16 for size in held} == {0}


def calibrated(case: Scripted, tmp_path: Path, target_ns: int = 1_000_000) -> int:
    turns = new_turns(tmp_path)
    turns.cases["net"] = case
    return int(turns.calibrate({"case": "net", "target_ns": target_ns})["calls"])


def test_slow_first_calls_do_not_decide_how_many_make_a_turn(tmp_path: Path) -> None:
    """Else the same code would get turns of one call where it is loaded first, and of four where it is not."""
    assert calibrated(Scripted(*[1_700_000] * 4, 290_000), tmp_path) == calibrated(Scripted(290_000), tmp_path) == 4


@pytest.mark.parametrize(
    ("ns", "target_ns", "calls", "most"), [(200_000_000, 1_000_000, 1, 1), (1, 1000, 1000, 10_000)]
)
def test_calls_are_not_repeated_without_end(ns: int, target_ns: int, calls: int, most: int, tmp_path: Path) -> None:
    """Long ones are warm after one; of those of nearly nothing there are never enough."""
    case = Scripted(ns)
    assert calibrated(case, tmp_path, target_ns=target_ns) == calls
    assert case.made <= most
