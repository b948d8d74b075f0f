"""What the scripted iree-compile and runtime tools do; see fake_toolchain.py.

It runs as a program of its own and starts in a few milliseconds, so it imports little and nothing of the harness.
"""

import hashlib
import json
import os
import re
import signal
import struct
import sys
import time
import zipfile
from pathlib import Path

_MODULE_MEMBER = "module.fb"
_STATISTICS = """\
//   Constants: 0, estimated storage of 0 B (0.00 MiB)
//   Variables: 0, (TBD) 0 B (0.00 MiB)
//  D->H Syncs: 1
// Submissions: 1, using cumulative 128 B (0.00 MiB)
//   DMA Fills: 0
//  DMA Copies: 2
// Collectives: 0
//  Dispatches: 3
// Async Calls: 0
// Executables: 1, 66% reuse
"""


def main() -> None:
    """Do what the program's own name, its script and its command line say."""
    tool = Path(sys.argv[0])
    script = json.loads((tool.parent / "script.json").read_text())
    arguments = [_dashed(one) for one in (*sys.argv[1:], *script["always"].get(tool.name, []))]
    with Path(script["calls"]).open("a") as calls:
        calls.write(json.dumps({"tool": tool.name, "arguments": sys.argv[1:], "pid": os.getpid()}) + "\n")
    _TOOLS[tool.name](arguments)
    for text in _values(arguments, "--fake-stderr"):
        sys.stderr.write(text + "\n")
    sys.stdout.flush()
    sys.stderr.flush()
    _end(arguments)


def _end(arguments: list[str]) -> None:
    hoard = bytearray()
    for mebibytes in _values(arguments, "--fake-allocate"):
        hoard += b"\1" * (int(mebibytes) << 20)
    for seconds in _values(arguments, "--fake-sleep"):
        time.sleep(float(seconds))
    for name in _values(arguments, "--fake-signal"):
        os.kill(os.getpid(), signal.Signals[f"SIG{name}"])
    sys.exit(int(_value(arguments, "--fake-exit", "0")))


def _compile(arguments: list[str]) -> None:
    """Write a module whose bytes depend on the model and on --fake-code, as the real one's do on the code alone."""
    if "--help-list-hidden" in arguments:
        sys.stdout.write("".join(f"  --{name}\n" for name in _KNOWN_FLAGS))
        return
    if "--fake-no-output" in arguments:
        return
    code = Path(_file(arguments)).read_bytes() + "\n".join(_values(arguments, "--fake-code")).encode()
    exports = dict(pair.split(":") for pair in _value(arguments, "--fake-exports", "main:1").split(","))
    facts = {
        "code": hashlib.sha256(code).hexdigest(),
        "exports": exports,
        "values": _values(arguments, "--fake-values"),
    }
    members = {_MODULE_MEMBER: json.dumps(facts), "main_dispatch_0.so": "code"}
    with zipfile.ZipFile(arguments[arguments.index("-o") + 1], "w") as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    for path in _values(arguments, "--iree-scheduling-dump-statistics-file"):
        Path(path).write_text(_STATISTICS)


def _dump(arguments: list[str]) -> None:
    lines = ["Exported Functions:"]
    for position, (name, results) in enumerate(_read(_file(arguments))["exports"].items()):
        kinds = ", ".join(["!vm.ref<?>"] * int(results))
        lines.append(f"  [{position:3}] {name}(!vm.ref<?>) -> ({kinds})")
    sys.stdout.write("\n".join([*lines, "", ""]))


def _run(arguments: list[str]) -> None:
    """Write each output: the values given at run time, else those that were compiled in, else 1, 2, 3."""
    if "--fake-no-output" in arguments:
        return
    module = _value(arguments, "--module", "module.vmfb")
    compiled = _read(module)["values"] if Path(module).exists() else []
    values = _values(arguments, "--fake-values") or compiled or ["1,2,3"]
    for position, path in enumerate(_values(arguments, "--output")):
        numbers = [float(number) for number in values[min(position, len(values) - 1)].split(",")]
        Path(path.lstrip("@")).write_bytes(_npy(numbers))


def _benchmark(arguments: list[str]) -> None:
    if "--help" in arguments:
        sys.stdout.write("".join(f"--{name.replace('-', '_')}\n" for name in _KNOWN_FLAGS))
        return
    name = f"BM_{_value(arguments, '--function', 'main')}/process_time/real_time"
    row = {"name": name, "run_name": name, "run_type": "iteration", "time_unit": "ns"}
    times = [float(text) for text in _value(arguments, "--fake-times-ns", "1000,1100,1050").split(",")]
    rows = [{**row, "real_time": time_ns, "cpu_time": time_ns} for time_ns in times]
    lie = {**row, "run_type": "aggregate", "aggregate_unit": "percentage", "real_time": 0.01}
    document = {"context": {"load_avg": [0.5, 0.25, 0.125]}, "benchmarks": [*rows, lie]}
    if "--fake-no-output" not in arguments:
        sys.stdout.write(json.dumps(document))
    sys.stderr.write("Device: fake\n  HOST_LOCAL:  0B peak / 0B live\nDEVICE_LOCAL:  64B peak / 0B live\n\n")


def _npy(numbers: list[float]) -> bytes:
    """A .npy file of a row of f32, without numpy, which takes longer to import than all the rest."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(numbers)},), }}"
    padded = header + " " * (-(len(header) + 11) % 64) + "\n"
    return (
        b"\x93NUMPY\x01\x00"
        + struct.pack("<H", len(padded))
        + padded.encode()
        + struct.pack(f"<{len(numbers)}f", *numbers)
    )


def _file(arguments: list[str]) -> str:
    """The model to compile, or the module to list."""
    return next(one for one in arguments if not one.startswith("-"))


def _read(module: str) -> dict:  # type: ignore[type-arg]
    with zipfile.ZipFile(module) as archive:
        facts: dict = json.loads(archive.read(_MODULE_MEMBER))  # type: ignore[type-arg]
        return facts


def _dashed(argument: str) -> str:
    """IREE's compiler spells flags with dashes, its runtime with underscores; the fakes take both."""
    name, equals, value = argument.partition("=")
    return f"{name.replace('_', '-')}{equals}{value}" if name.startswith("--fake_") else argument


def _values(arguments: list[str], flag: str) -> list[str]:
    return [match[1] for one in arguments if (match := re.fullmatch(f"{re.escape(flag)}=(.*)", one, re.DOTALL))]


def _value(arguments: list[str], flag: str, default: str) -> str:
    return next(iter(_values(arguments, flag)), default)


_FAKE = "allocate code exit exports no-output signal sleep stderr times-ns values"
_KNOWN_FLAGS = (*(f"fake-{name}" for name in _FAKE.split()), "iree-hal-target-device", "iree-llvmcpu-target-cpu")
_TOOLS = {
    "iree-compile": _compile,
    "iree-dump-module": _dump,
    "iree-run-module": _run,
    "iree-benchmark-module": _benchmark,
}
