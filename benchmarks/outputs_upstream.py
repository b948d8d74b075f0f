"""The reference evaluator on upstream's operator tests: ONNX's own tests of each operator, as IREE runs them.

    .venv/bin/python -m benchmarks.outputs_upstream CHECKOUT     (half an hour; writes a part of docs/statistics.md)

CHECKOUT is a clone of iree-org/iree-test-suites. Each test is converted, compiled and run with upstream's own flags,
and iree-run-module says as there whether its outputs are the expected ones. Beside it stands what the evaluator says of
the same outputs, and whether its exact values are the expected ones. What was done is kept by content, so that a second
call goes on where the first was stopped, and evaluates again only after a change of the evaluator.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.documents import replace_between
from benchmarks.upstream_networks import VARIANTS, Network, linalg_of, networks_of, outputs_of, timed
from harness.cache import write_atomically
from harness.models.inputs import from_bf16_bits
from harness.report.markdown import blocks, table
from harness.toolchain import Toolchain
from harness.toolchain import find_toolchain as find
from harness.verify.evaluate import evaluate, tolerances
from harness.verify.interpreter import Exported, TooLongError
from harness.verify.rounding import FACTOR, Array, UnsupportedError

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "statistics.md"
BEGIN = "<!-- made by `python -m benchmarks.outputs_upstream`: begin -->"
END = "<!-- benchmarks.outputs_upstream: end -->"
SECONDS = 20.0
_CONFIG = "onnx_ops/configs/onnx_ops_cpu_llvm_sync.json"
_LIMIT_S = 300
_TYPES = {
    **{f"{sign}{width}": f"<i{width // 8}" for sign in ("i", "si") for width in (8, 16, 32, 64)},
    **{f"ui{width}": f"<u{width // 8}" for width in (8, 16, 32, 64)},
    "i1": "?", "f16": "<f2", "f32": "<f4", "f64": "<f8", "bf16": "<u2",
}  # fmt: skip
# iree-run-module's own thresholds, absolute.
_EXPECTED_WITHIN = {"f16": 1e-3, "f32": 1e-4, "f64": 1e-4}


@cache
def find_toolchain() -> Toolchain:
    """The one that is installed here."""
    return find()


@dataclass(frozen=True, kw_only=True)
class Test:
    """One folder.

    Attributes:
        flags: Upstream's for iree-compile.
    """

    folder: Path
    kept: Path
    flags: tuple[str, ...]
    run_flags: tuple[str, ...]
    skipped: bool

    @property
    def key(self) -> str:
        """Of what is compiled and run, and with what."""
        said = hashlib.sha256(find_toolchain().compiler_sha256.encode())
        said.update(repr((self.flags, self.run_flags)).encode())
        for file in sorted(self.folder.iterdir()):
            said.update(file.read_bytes())
        return said.hexdigest()[:24]

    @property
    def source(self) -> str:
        """The program's text."""
        return (self.folder / "model.mlir").read_text()

    @property
    def function(self) -> str:
        """Its entry."""
        found = re.search(r"func\.func (?:public )?@([\w$.]+)", self.source)
        return found[1] if found else ""

    @property
    def operator(self) -> str:
        """What it tests, by the operator that its name has most in common with."""
        names = sorted(set(re.findall(r'"onnx\.(\w+)"', self.source)))
        name = self.folder.name.replace("_", "").lower()
        return max(names, key=lambda one: (one.lower() in name, len(one) if one.lower() in name else 0), default="none")

    def values(self, kind: str) -> list[Array]:
        """Its inputs or expected outputs.

        Raises:
            UnsupportedError: One has elements that NumPy has not.
        """
        arrays = []
        for flag in (self.folder / "run_module_io_flags.txt").read_text().split("\n"):
            if flag.startswith(f"--{kind}="):
                type_, _, file = flag.partition("=")[2].partition("=@")
                *sizes, element = type_.split("x")
                if element not in _TYPES:
                    raise UnsupportedError(f"inputs or outputs of {element}")
                shape = [int(size) for size in sizes]
                values = np.fromfile(self.folder / file, dtype=_TYPES[element]).reshape(shape)
                arrays.append(from_bf16_bits(values) if element == "bf16" else values)
        return arrays


def tests_of(checkout: Path, kept: Path) -> list[Test]:
    """All operator tests of a checkout."""
    config = json.loads((checkout / _CONFIG).read_text())
    skipped = {*config["skip_compile_tests"], *config["skip_run_tests"]}
    folders = sorted(folder for folder in (checkout / "onnx_ops/onnx/node/generated").iterdir() if folder.is_dir())
    return [
        Test(
            folder=folder,
            kept=kept,
            flags=tuple(config["iree_compile_flags"]),
            run_flags=tuple(config["iree_run_module_flags"]),
            skipped=f"onnx/node/generated/{folder.name}" in skipped,
        )
        for folder in folders
    ]


def _once(file: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a file keeps, made where it is not there."""
    if not file.is_file():
        write_atomically(file, json.dumps(make()).encode())
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def _tool(command: Sequence[str], folder: Path) -> tuple[bool, str]:
    """Run a tool; whether it succeeds, and the first line that says why not."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_LIMIT_S, errors="replace")
    except subprocess.TimeoutExpired:
        return False, f"more than {_LIMIT_S} s"
    lines = [line for line in (done.stderr + done.stdout).splitlines() if re.search("error:|FAILED|; ", line)]
    return done.returncode == 0, lines[0][:400] if lines else f"status {done.returncode}"


def converted(test: Test) -> dict[str, Any]:
    """The program as linalg: its `text`, or the `error` of its conversion."""

    def make() -> dict[str, Any]:
        toolchain = find_toolchain()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            command = [str(toolchain.iree_compile), str(test.folder / "model.mlir"), "--compile-to=input", "-o=a.mlir"]
            done, error = _tool([*command, *test.flags], folder)
            return {"text": (folder / "a.mlir").read_text()} if done else {"error": error}

    return _once(test.kept / "converted" / f"{test.key}.json", make)


def ran(test: Test) -> dict[str, Any]:
    """What upstream sees: `compile`, `run` or `expected` is the error; none: it passes. Keeps the outputs that come."""

    def make() -> dict[str, Any]:
        toolchain = find_toolchain()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            command = [str(toolchain.iree_compile), str(test.folder / "model.mlir"), f"-o={folder}/m.vmfb"]
            done, error = _tool([*command, *test.flags], folder)
            if not done:
                return {"compile": error}
            io = (test.folder / "run_module_io_flags.txt").read_text().split("\n")
            inputs = [flag for flag in io if flag.startswith("--input=")]
            expected = [flag for flag in io if flag.startswith("--expected_output=")]
            ends = ["bin" if "bf16=" in flag else "npy" for flag in expected]
            outputs = [f"--output=@{folder}/{position}.{end}" for position, end in enumerate(ends)]
            command = [str(toolchain.runtime_tool("iree-run-module")), f"--module={folder}/m.vmfb", *test.run_flags]
            command += [f"--function={test.function}", *inputs]
            done, error = _tool([*command, *outputs], test.folder)
            if not done:
                return {"run": error}
            made = test.kept / "outputs" / test.key
            made.mkdir(parents=True, exist_ok=True)
            for position, end in enumerate(ends):
                file = folder / f"{position}.{end}"
                values = from_bf16_bits(np.fromfile(file, dtype="<u2")) if end == "bin" else np.load(file)
                np.save(made / f"{position}.npy", values)
            done, error = _tool([*command, *expected], test.folder)
            return {} if done else {"expected": error}

    return _once(test.kept / "ran" / f"{test.key}.json", make)


@cache
def _evaluator() -> str:
    """The evaluator's content."""
    said = hashlib.sha256(Path(__file__).read_bytes())
    for file in sorted((ROOT / "harness" / "verify").glob("*.py")):
        said.update(file.read_bytes())
    return said.hexdigest()[:16]


def judged(test: Test) -> dict[str, Any]:
    """What the evaluator says: `unknown` or `too_long` with a reason, else how far the outputs are from its values.

    `beyond` counts elements outside of the tolerance, `spreads` is the worst distance, `agrees` whether the exact
    values are the expected outputs by upstream's thresholds or the tolerance.
    """

    def make() -> dict[str, Any]:
        try:
            inputs, expected = test.values("input"), test.values("expected_output")
            outputs, samples, *_ = evaluate(converted(test)["text"], test.function, inputs, {}, SECONDS)
        except UnsupportedError as error:
            return {"unknown": str(error)}
        except TooLongError as error:
            return {"too_long": str(error)}
        found: dict[str, Any] = {"samples": samples}
        pairs = list(zip(outputs, expected, strict=True))
        found["agrees"] = all(_agrees(output, right) for output, right in pairs)
        files = [test.kept / "outputs" / test.key / f"{position}.npy" for position in range(len(outputs))]
        if all(file.is_file() for file in files):
            distances = [distance(output, np.load(file)) for output, file in zip(outputs, files, strict=True)]
            found["beyond"] = sum(beyond for beyond, _ in distances)
            found["spreads"] = max(spreads for _, spreads in distances)
        return found

    return _once(test.kept / "judged" / _evaluator() / f"{test.key}.json", make)


def distance(output: Exported, values: Array) -> tuple[int, float]:
    """How many elements are outside of the tolerance, and the largest distance in spreads."""
    right, allowed = tolerances(output)
    off = _off(values, right)
    off[np.isposinf(allowed)] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        spreads = np.where(off > 0, off / (allowed / FACTOR), 0.0)
    return int((off > allowed).sum()), float(min(spreads.max(initial=0.0), 1e300))


def _agrees(output: Exported, expected: Array) -> bool:
    off = _off(expected, output.values[0])
    return bool((off <= np.maximum(tolerances(output)[1], _EXPECTED_WITHIN.get(output.kind, 0.0))).all())


def _off(values: Array, right: Array) -> Array:
    """Distances in float64, infinite where one is NaN, or another infinity, and the other is not."""
    values = values.reshape(right.shape)
    if right.dtype.kind == "i" and values.dtype.kind == "u":
        values = values.view(values.dtype.str.replace("u", "i"))
    a, b = values.astype(np.float64), right.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.nan_to_num(np.abs(a - b), nan=np.inf))


def examine(test: Test) -> dict[str, Any]:
    """All that is known of a test."""
    about: dict[str, Any] = {"name": test.folder.name, "operator": test.operator, "skipped": test.skipped}
    about["ran"] = ran(test)
    text = converted(test)
    about["judged"] = judged(test) if "text" in text else {"unknown": "the conversion to linalg fails"}
    return about


def examine_network(network: Network, kept: Path) -> dict[str, Any]:
    """How far each variant's outputs, and upstream's, are from the evaluator's values."""
    said = hashlib.sha256(find_toolchain().compiler_sha256.encode() + network.program.read_bytes()).hexdigest()[:16]
    name = f"{said}-{network.function}"

    def ran_with(variant: str) -> list[Array]:
        made = kept / "networks" / f"{name}-{variant.replace(' ', '-')}.npz"
        if not made.is_file():
            outputs = outputs_of(network, VARIANTS[variant], find_toolchain())
            made.parent.mkdir(parents=True, exist_ok=True)
            np.savez(made, *outputs)
        with np.load(made) as arrays:
            return [arrays[f"arr_{position}"] for position in range(network.outputs)]

    def make() -> dict[str, Any]:
        made = _once(kept / "networks" / f"{name}.json", lambda: {"text": linalg_of(network, find_toolchain())})
        files = {"model": str(network.parameters)}
        (outputs, samples, *_), took = timed(
            lambda: evaluate(made["text"], network.function, network.inputs, files, 10 * SECONDS)
        )
        found: dict[str, Any] = {"name": network.name, "cpu_s": took, "samples": samples}
        for variant in VARIANTS:
            pairs = zip(outputs, ran_with(variant), strict=True)
            distances = [distance(output, values) for output, values in pairs]
            found[variant] = [sum(beyond for beyond, _ in distances), max(spreads for _, spreads in distances)]
        if network.expected is not None:
            found["expected"] = distance(outputs[0], network.expected)
        return found

    return _once(kept / "judged" / _evaluator() / f"{name}.json", make)


def network_table(networks: Sequence[dict[str, Any]]) -> str:
    """What goes into the document, of networks."""

    def cell(said: Sequence[float] | None) -> str:
        return "-" if said is None else f"{'refused' if said[0] else 'right'}, {said[1]:.1f}"

    columns = [*VARIANTS, "expected"]
    rows = [
        [said["name"], f"{said['cpu_s']:.1f}", str(said["samples"] - 1), *(cell(said.get(key)) for key in columns)]
        for said in networks
    ]
    heads = ["network", "CPU s", "shakes", *VARIANTS, "upstream's file"]
    return blocks(
        "Toy networks on llvm-cpu for this machine's processor: what the evaluation takes on one core, and what it "
        "says of each variant's outputs and of upstream's expected ones, with the worst element's distance in spreads:",
        table(heads, rows),
    )


def upstream_of(about: dict[str, Any]) -> str:
    """What upstream's own check says."""
    said = about["ran"]
    for key, word in (("compile", "does not compile"), ("run", "does not run"), ("expected", "not as expected")):
        if key in said:
            return word
    return "passes"


def ours_of(about: dict[str, Any]) -> str:
    """What the evaluator says of IREE's outputs."""
    said = about["judged"]
    if "unknown" in said:
        return "not known"
    if "too_long" in said:
        return "too long"
    if "beyond" not in said:
        return "evaluated, no outputs"
    return "refused" if said["beyond"] else "right"


def tables(tests: Sequence[dict[str, Any]]) -> str:
    """What goes into the document."""
    ours = [word for word in ("right", "refused", "not known", "too long", "evaluated, no outputs")
            if any(ours_of(about) == word for about in tests)]  # fmt: skip
    rows = []
    for word in ("passes", "not as expected", "does not run", "does not compile"):
        members = [about for about in tests if upstream_of(about) == word]
        counted = Counter(ours_of(about) for about in members)
        rows.append([word, str(len(members)), *(str(counted[ours_word]) for ours_word in ours)])
    unknown = [about["judged"]["unknown"] for about in tests if "unknown" in about["judged"]]
    broken = [about["ran"].get("compile", about["ran"].get("run")) for about in tests]
    parts = [
        f"{len(tests)} tests, IREE {find_toolchain().version} on local-sync with upstream's flags; rows are what "
        "iree-run-module says with upstream's expected outputs, columns what the evaluator says.",
        table(["upstream", "tests", *ours], rows),
        "Tests whose outputs are not as expected or refused, by operator and by who agrees with whom:",
        table(["which", "tests", "operators"], list(_causes(tests))),
        "What the evaluator does not know:",
        table(["what", "tests"], _counted(unknown)),
        "What IREE does not compile or run, by its own first words:",
        table(["error", "tests"], _counted((_short(error) for error in broken if error), least=4)),
    ]
    return blocks(*parts)


def _causes(tests: Sequence[dict[str, Any]]) -> Iterable[list[str]]:
    groups: dict[str, list[str]] = {}
    for about in tests:
        said, upstream, ours = about["judged"], upstream_of(about), ours_of(about)
        if ours not in ("right", "refused") or (upstream == "passes" and ours == "right" and said["agrees"]):
            continue
        if upstream == "not as expected" and ours == "right":
            which = "IREE computes what it converted; the conversion is not what ONNX expects"
        elif upstream == "not as expected" and said["agrees"]:
            which = "the conversion is what ONNX expects; IREE computes something else"
        elif upstream == "not as expected":
            which = "neither the conversion nor what IREE computes is what ONNX expects"
        elif ours == "refused":
            which = "upstream passes and the evaluator refuses"
        else:
            which = "upstream and the evaluator pass; the expected values are within neither's reach of the exact ones"
        groups.setdefault(which, []).append(about["operator"])
    for which, operators in sorted(groups.items()):
        counted = Counter(operators)
        names = ", ".join(f"{name} {count}" if count > 1 else name for name, count in sorted(counted.items()))
        yield [which, str(len(operators)), names]


def _counted(words: Iterable[str], least: int = 1) -> list[list[str]]:
    counted = Counter(words)
    rows = [[word, str(count)] for word, count in counted.most_common() if count >= least]
    others = [count for count in counted.values() if count < least]
    return [*rows, [f"{len(others)} others", str(sum(others))]] if others else rows


def _short(error: str) -> str:
    """An error without its place, its values and its types."""
    said = error.partition("error: ")[2] or error.rpartition("; ")[2] or error
    named = re.match(r"failed to legalize operation '([\w.]+)'", said)
    if named and named[1] == "torch.operator":
        inner = re.search(r'name = "([\w.]+)"|"(onnx\.\w+)"', said)
        return f"not converted: {(inner[1] or inner[2]) if inner else 'an operator of ONNX'}"
    return f"not converted: {named[1]}" if named else re.sub(r"'[^']*'|%\S+|<.*?>|\d+", "..", said)[:60]


def main() -> None:
    """Examine all tests, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--keep", type=Path, default=ROOT / "results" / "outputs-upstream", help="where results stay")
    parser.add_argument("--filter", default="", help="tests whose name has this, and no document is written")
    parser.add_argument("--no-judge", action="store_true", help="convert, compile and run only")
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    tests = [test for test in tests_of(asked.checkout.absolute(), asked.keep) if asked.filter in test.folder.name]
    with ProcessPoolExecutor(asked.processes) as pool:
        if asked.no_judge:
            list(pool.map(converted_and_ran, tests, chunksize=2))
            return
        found = list(pool.map(examine, tests, chunksize=2))
    if asked.filter:
        print(*(json.dumps(about) for about in found), sep="\n")
    text = tables(found)
    if not asked.filter:
        networks = [examine_network(network, asked.keep) for network in networks_of(asked.checkout.absolute())]
        text = blocks(text, network_table(networks))
    print(text)
    write_atomically(asked.keep / "found.json", json.dumps(found, indent=1).encode())
    if not asked.filter:
        replace_between(DOCUMENT, BEGIN, END, text)


def converted_and_ran(test: Test) -> None:
    """What needs IREE and not the evaluator."""
    converted(test)
    ran(test)


if __name__ == "__main__":
    main()
