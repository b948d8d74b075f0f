"""Programs of upstream's tests -> suites, and the files of values that they name."""

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from harness.errors import RunError, UsageError
from harness.models.inputs import Array
from harness.store.files import writing
from harness.suite.schema import LONGEST_NAME, NAME_PATTERN, DeviceTable
from harness.text import one_line, plural
from harness.upstream.files import Files
from harness.upstream.models import sharktank_models, torch_models
from harness.upstream.operators import onnx_operators, torch_operators
from harness.upstream.program import NotHere, Program, Tests
from harness.upstream.values import Elements

_Reader = Callable[[Path, Path | None, Files], Tests]
# What each kind of tests is called in upstream's checkout, and who reads it.
_KINDS: Mapping[str, _Reader] = {
    "onnx-ops": onnx_operators,
    "torch-ops": torch_operators,
    "torch-models": torch_models,
    "sharktank-models": sharktank_models,
}
_VARIANT = "upstream"
_ELSEWHERE = "choose another folder with --out"


def write_suites(
    source: Path, name: str, out: Path, say: Callable[[str], None], *, config: Path | None, files: Path | None
) -> Path:
    """Write a suite for each kind of tests below a folder; the file to run.

    Of one kind that is the suite `NAME.toml`; of several a list of suites, `NAME-KIND.toml`.

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
    target, description = out / f"{name}.toml", f"Tests of iree-test-suites, from {source.resolve().name}"
    suites = {kind: target if len(found) == 1 else out / f"{name}-{kind}.toml" for kind in found}
    for file in (target, *suites.values()):
        if file.exists():
            raise UsageError(f"{file}: is there already; choose another name, or another folder with --out")
    with writing(out, _ELSEWHERE):
        out.mkdir(parents=True, exist_ok=True)
        for kind, suite in suites.items():
            _write(suite, f"{description}: {kind}", found[kind], say)
        names = [suite.name for suite in suites.values() if suite.exists()]
        if not names:
            raise UsageError(f"--from {source}: none of its tests can be a case here; the lines above say why")
        if len(suites) > 1:
            content = {"name": name, "description": description, "suites": names}
            target.write_text(tomli_w.dumps(content), encoding="utf-8")
    return target


def _write(
    suite: Path,
    description: str,
    tests: Sequence[tuple[str, Callable[[], Program] | str]],
    say: Callable[[str], None],
) -> None:
    """Write the suite of one kind of tests, unless none can be a case; its values go into a folder beside it."""
    programs: list[Program] = []
    tables: dict[str, dict[str, Any]] = {}
    remarks: list[tuple[str, str, str]] = []  # What is said of tests of which something is not there, with its reason
    for name, test in tests:
        if name in tables or not re.fullmatch(NAME_PATTERN, name) or len(name) > LONGEST_NAME:
            remarks.append((name, "without", "its name is another's too, or none that a suite may have"))
            continue
        if isinstance(test, str):
            remarks.append((name, "without", test))
            continue
        try:
            program = test()
            tables[name] = _table(program, suite.parent, suite.with_suffix(""))
        except RunError:  # what cannot be written is no fault of the test
            raise
        except NotHere as error:
            remarks.append((name, "without", str(error)))
        except (UsageError, OSError, ValueError, MemoryError) as error:
            remarks.append((name, "without", f"it is damaged: {error}"))
        else:
            programs.append(program)
            remarks += [(name, "without right outputs of", program.without)] if program.without else []
    say(f"{suite}: {plural(len(programs), 'test')} of {description.rpartition(' ')[2]}")
    remarks = [(name, what, one_line(why)) for name, what, why in remarks]
    for (what, why), number in Counter((what, why) for _, what, why in remarks).items():
        say(f"{suite}: {what} {plural(number, 'test')}, since {why}")
    if programs:
        head = "".join(f"# {what} {one_line(name)}, since {why}\n" for name, what, why in remarks)
        suite.write_text(head + tomli_w.dumps(_suite(suite.stem, description, programs, tables)), encoding="utf-8")


def _suite(
    name: str, description: str, programs: Sequence[Program], tables: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    devices = _device_names(programs)
    content: dict[str, Any] = {
        "name": name,
        "description": description,
        "baseline": _VARIANT,
        "models": tables,
        "variants": {_VARIANT: {"description": "As upstream compiles it"}},
        "devices": {name: table.model_dump(by_alias=True, exclude_defaults=True) for table, name in devices.items()},
        "gates": {
            f"{test.name}-{metric}"[-LONGEST_NAME:]: {"metric": metric, "cases": f"{test.name}/*", "at_most": most}
            for test in programs
            for metric, most in test.limits.items()
        },
    }
    if len(devices) > 1:
        content["matrix"] = {"include": [f"{test.name}/*@{devices[test.device]}" for test in programs]}
    return content


def _device_names(programs: Sequence[Program]) -> dict[DeviceTable, str]:
    """A name for each device: `cpu`, or of several of one kind `cpu`, `cpu-2`, ..."""
    names: dict[DeviceTable, str] = {}
    for device in dict.fromkeys(test.device for test in programs):
        kind = "cpu" if device.uris[0].startswith("local") else device.uris[0].partition(":")[0]
        alike = sum(name.partition("-")[0] == kind for name in names.values())
        names[device] = f"{kind}-{alike + 1}" if alike else kind
    return names


def _table(test: Program, suite_folder: Path, folder: Path) -> dict[str, Any]:
    """A program's table in the suite; its values go into files below the folder."""

    def relative(file: Path) -> str:
        return Path(os.path.relpath(file.resolve(), suite_folder.resolve())).as_posix()

    def saved(array: Array, file: str) -> str:
        target = folder / test.name / file
        with writing(target, _ELSEWHERE):
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
