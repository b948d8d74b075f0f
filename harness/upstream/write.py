"""Programs of upstream's tests -> suites, and the files of values that they name."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from harness.errors import UsageError
from harness.models.inputs import Array
from harness.store.files import writing
from harness.upstream.files import Files
from harness.upstream.models import sharktank_models, torch_models
from harness.upstream.operators import onnx_operators, torch_operators
from harness.upstream.program import LeftOut, Program, Target
from harness.upstream.values import Elements

_Reader = Callable[[Path, Path | None, Files], Iterator[Program | LeftOut]]
# What each kind of tests is called in upstream's checkout, and who reads it.
_KINDS: Mapping[str, _Reader] = {
    "onnx-ops": onnx_operators,
    "torch-ops": torch_operators,
    "torch-models": torch_models,
    "sharktank-models": sharktank_models,
}
_VARIANT = "upstream"
# Calls of operators take microseconds, and there are a thousand of them.
_BUDGET_S = {"onnx-ops": 600.0}


@dataclass(frozen=True, kw_only=True)
class Written:
    """What was written of one kind of tests."""

    suite: Path
    programs: int
    left_out: tuple[LeftOut, ...]


def write_suites(
    source: Path, name: str, out: Path, say: Callable[[str], None], *, config: Path | None, files: Path | None
) -> tuple[Path, tuple[Written, ...]]:
    """Write a suite for each kind of tests below a folder; the file to run, and what was written.

    Of one kind that file is `NAME.toml`; of several a list of suites, `NAME-KIND.toml`.

    Raises:
        UsageError: the folder has no test that is known, or a test has another form than upstream's.
    """
    if not source.is_dir():
        raise UsageError(f"--from {source}: there is no such folder; give a checkout of iree-test-suites")
    known = Files(files, say)
    tests = {kind: list(reader(source, config, known)) for kind, reader in _KINDS.items()}
    found = {kind: each for kind, each in tests.items() if each}
    if not found:
        raise UsageError(
            f"--from {source}: has none of the tests of iree-test-suites ({', '.join(_KINDS)}); give its checkout"
        )
    names = {kind: f"{name}-{kind}" if len(found) > 1 else name for kind in found}
    with writing(out, "choose another folder with --out"):
        out.mkdir(parents=True, exist_ok=True)
        written = tuple(_write(out, names[kind], kind, source, each, say) for kind, each in found.items())
        if len(written) == 1:
            return written[0].suite, written
        suites = [each.suite.name for each in written if each.programs]
        target = _new(out / f"{name}.toml")
        target.write_text(tomli_w.dumps({"name": name, "description": _of(source), "suites": suites}), encoding="utf-8")
    return target, written


def _of(source: Path) -> str:
    return f"Tests of iree-test-suites, from {source.name}"


def _new(file: Path) -> Path:
    if file.exists():
        raise UsageError(f"{file}: is there already; choose another name, or another folder with --out")
    return file


def _write(
    out: Path, name: str, kind: str, source: Path, tests: list[Program | LeftOut], say: Callable[[str], None]
) -> Written:
    programs = [test for test in tests if isinstance(test, Program)]
    left_out = tuple(test for test in tests if isinstance(test, LeftOut))
    suite = _new(out / f"{name}.toml")
    say(f"{suite}: {len(programs):,} programs of {kind}")
    if not programs:
        return Written(suite=suite, programs=0, left_out=left_out)
    devices = _device_names(programs)
    content: dict[str, Any] = {
        "name": name,
        "description": f"{_of(source)}: {kind}",
        "baseline": _VARIANT,
        "models": {test.name: _table(test, out, out / name) for test in programs},
        "variants": {_VARIANT: {"description": "As upstream compiles it"}},
        "devices": {
            device: {
                "uri": target.uri,
                "backend": target.backend,
                "compile_flags": list(target.compile_flags),
                "run_flags": list(target.run_flags),
            }
            for target, device in devices.items()
        },
        "gates": {
            f"{test.name}-{metric}"[-100:]: {"metric": metric, "cases": f"{test.name}/*", "at_most": most}
            for test in programs
            for metric, most in test.limits.items()
        },
    }
    if len(devices) > 1:
        content["matrix"] = {"include": [f"{test.name}/*@{devices[test.target]}" for test in programs]}
    if kind in _BUDGET_S:
        content["measure"] = {"budget_s": _BUDGET_S[kind]}
    head = "".join(f"# Not in it: {test.name}, since {test.why}.\n" for test in left_out)
    suite.write_text(head + tomli_w.dumps({key: value for key, value in content.items() if value}), encoding="utf-8")
    return Written(suite=suite, programs=len(programs), left_out=left_out)


def _device_names(programs: list[Program]) -> dict[Target, str]:
    """A name for each target: `cpu`, or of several for one kind of device `cpu`, `cpu-2`, ..."""
    names: dict[Target, str] = {}
    for target in dict.fromkeys(test.target for test in programs):
        kind = "cpu" if target.uri.startswith("local") else target.uri.partition(":")[0]
        alike = sum(name.partition("-")[0] == kind for name in names.values())
        names[target] = f"{kind}-{alike + 1}" if alike else kind
    return names


def _table(test: Program, suite_folder: Path, folder: Path) -> dict[str, Any]:
    """A program's table in the suite; its values go into files below the folder."""

    def relative(file: Path) -> str:
        return Path(os.path.relpath(file.resolve(), suite_folder.resolve())).as_posix()

    def saved(array: Array, file: str) -> str:
        target = folder / test.name / file
        target.parent.mkdir(parents=True, exist_ok=True)
        np.save(target, array, allow_pickle=False)
        return relative(target)

    def argument(value: Elements | Array, position: int) -> dict[str, Any]:
        if isinstance(value, Elements) and value.file is None:
            return {"shape": list(value.shape), "dtype": value.dtype, "value": value.constant}
        array = value.array() if isinstance(value, Elements) else value
        table = {"npy": saved(array, f"input{position}.npy")}
        return {**table, "dtype": "bf16"} if isinstance(value, Elements) and value.dtype == "bf16" else table

    expected = [
        relative(right) if isinstance(right, Path) else saved(right.array(), f"expected{position}.npy")
        for position, right in enumerate(test.expected)
    ]
    table: dict[str, Any] = {
        "mlir": relative(test.mlir),
        "function": test.function,
        "inputs": [argument(value, position) for position, value in enumerate(test.inputs)],
    }
    if expected:
        table |= {"expected": expected, "reference": "expected"}
    if test.parameters:
        table["parameters"] = {scope: relative(file) for scope, file in test.parameters.items()}
    return table | dict(test.more)
