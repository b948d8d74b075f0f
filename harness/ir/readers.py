"""Answers of harness.ir.child: what a program's operations are, by MLIR's bindings.

It runs under a toolchain's own Python.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from iree.compiler import ir
from iree.compiler.passmanager import PassManager

from harness.ir.sizes import nested, operations_in
from harness.metrics import BUFFERIZED

_EXECUTABLES = ("flow.executable", "stream.executable", "hal.executable", "hal.executable.source")
_WITH_REGIONS = frozenset((*_EXECUTABLES, "flow.dispatch.region", "flow.dispatch.workgroups"))
_EXPORTS = ("flow.executable.export", "stream.executable.export", "hal.executable.export")
_VARIANT = "hal.executable.variant"
_DISPATCHES = ("flow.dispatch", "stream.async.dispatch", "stream.cmd.dispatch")
# It repeats the region of the export, which is there in all releases.
_REPEATED = "iree_codegen.dispatch_config"
_LONGEST_LIST = 64


def entries(modules: Iterable[Any], _: str) -> dict[str, dict[str, Any]]:
    """By name: `arguments` and `results` as MLIR writes their types, and whether it is `public`, as JSON."""
    (module,) = modules
    functions = {}
    for op in module.body.operations:
        attributes = op.operation.attributes
        if "function_type" not in attributes or "sym_name" not in attributes:
            continue  # an initializer has no name
        if not any(len(region.blocks) for region in op.operation.regions):
            continue
        kind = attributes["function_type"].value
        visibility = attributes["sym_visibility"].value if "sym_visibility" in attributes else "public"
        functions[attributes["sym_name"].value] = {
            "arguments": [str(argument) for argument in kind.inputs],
            "results": [str(result) for result in kind.results],
            "public": visibility == "public",
        }
    return functions


def reduced(modules: Iterable[Any], phase: str, *, entry: str, target: str, as_bytecode: bool) -> list[str]:
    """Names of the public functions; where there are others than the entry, `target` gets the program without them."""
    (module,) = modules
    public = [name for name, function in entries([module], phase).items() if function["public"]]
    if entry in public and len(public) > 1:
        for op in module.body.operations:
            attributes = op.operation.attributes
            if "sym_name" in attributes and attributes["sym_name"].value in {*public} - {entry}:
                attributes["sym_visibility"] = ir.StringAttr.get("private")
        PassManager.parse("builtin.module(symbol-dce)").run(module.operation)
        with Path(target).open("wb") as file:
            if as_bytecode:
                module.operation.write_bytecode(file)
            else:
                file.write(f"{module}\n".encode())
    return public


def ops(modules: Iterable[Any], phase: str) -> dict[str, Counter[str]]:
    """How many of which ops a program has, outside executables (`host`) and inside them, as JSON."""
    host, executables = Counter[str](), Counter[str]()

    def count(op: Any, counter: Counter[str]) -> None:
        for inner in operations_in(op):
            counter[inner.name] += 1
            count(inner, executables if inner.name in _WITH_REGIONS else counter)

    # At this phase there are functions of executables without the executables around them.
    for module in modules:
        count(module.operation, executables if phase == BUFFERIZED else host)
    return {"host": host, "executables": executables}


def parts(modules: Iterable[Any], phase: str) -> dict[str, Any]:
    """The parts as JSON: `program`, texts of operations outside executables, and `executables`, in order.

    Of each executable:

    - `name`: of its function that is dispatched, else its own,
    - `names`: all of its symbols, which other numbers of dispatches change,
    - `texts`: of its exports and of what is in its module,
    - `targets`: what it is compiled for,
    - `dispatches`: how many operations dispatch it.

    Constants of more than 64 elements are left out of texts, and attributes stand where they are used.
    """
    program: list[str] = []
    executables: list[dict[str, Any]] = []
    dispatched: Counter[str] = Counter()
    for module in modules:
        if phase != BUFFERIZED:
            held = module.operation.attributes
            names = [str(getattr(item, "name", item)) for item in held]  # 3.13 iterates over names
            shown = ", ".join(f"{name} = {held[name]}" for name in names)
            program += [f"module attributes {{{shown}}}"] if shown else []
        for op in operations_in(module.operation):
            if op.name in _EXECUTABLES:
                executables.append(_executable(op))
            elif phase == BUFFERIZED:  # functions of executables, without the executables around them
                executables.append({"name": _symbol(op), "names": [_symbol(op)], "texts": [_text(op)], "targets": []})
            else:
                program.append(_text(op))
                dispatches = [inner for inner in (op, *nested(op)) if inner.name in _DISPATCHES]
                points = [point for inner in dispatches for point in inner.attributes["entry_points"]]
                dispatched.update(point.value[-1] for point in points)
    for executable in executables:
        executable["dispatches"] = sum(dispatched[name] for name in set(executable["names"]))
    return {"program": program, "executables": executables}


def _executable(op: Any) -> dict[str, Any]:
    names, exports, texts, targets = [_symbol(op)], [], [], []
    for inner in _inside(op):
        if inner.name == _VARIANT:
            targets.append(str(inner.attributes["target"]))
            continue
        if inner.name in _EXPORTS:
            exports.append(_symbol(inner))
        elif "sym_name" in inner.attributes:
            names.append(_symbol(inner))
        if inner.name != _REPEATED:
            texts.append(_text(inner))
    return {"name": (exports or names)[0], "names": [*names, *exports], "texts": texts, "targets": targets}


def _inside(op: Any) -> Iterator[Any]:
    """What an executable holds, variants and modules being opened."""
    for inner in operations_in(op):
        if inner.name != "builtin.module":
            yield inner
        if inner.name in (_VARIANT, "builtin.module"):
            yield from _inside(inner)


def _symbol(op: Any) -> str:
    return str(op.attributes["sym_name"].value) if "sym_name" in op.attributes else op.name


def _text(op: Any) -> str:
    return str(op.get_asm(use_local_scope=True, large_elements_limit=_LONGEST_LIST))
