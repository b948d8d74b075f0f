"""From suite.toml to a checked Suite, and from a list to a SuiteList: every name in them refers to what exists."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from harness.errors import SuiteError, UsageError
from harness.ir.op_counts import check_wanted
from harness.metrics import METRICS, PHASES
from harness.models.model import Input, Model, Tolerance
from harness.records.case import Gate, VariantGroup
from harness.suite.cells import case_expectation, model_expectation
from harness.suite.schema import (
    DeviceTable,
    FlagSetFile,
    GateTable,
    InputTable,
    ListFile,
    ModelTable,
    PeerTable,
    SuiteFile,
    VariantTable,
)
from harness.suite.toml_file import read_content, read_toml, shown, validated
from harness.suite.values import Device, FlagSet, PeerUse, PluginUse, Suite, SuiteList, Variant
from harness.text import did_you_mean


def find_list(path: Path) -> SuiteList | None:
    """The list that a file holds; None where it is no list, but for example a suite.

    Raises:
        SuiteError: The file cannot be read, or the list is wrong; the message names file, table and key.
    """
    content, _ = read_content(path)
    if not _is_list(content):
        return None
    table = validated(path, content, ListFile)
    suites = tuple(path.parent / name for name in table.suites)
    places = [os.path.normpath(name) for name in table.suites]
    for name, place in zip(table.suites, places, strict=True):
        if places.count(place) > 1:
            raise SuiteError(f"{path}: suites: {shown(name)} is there twice; remove one of them")
    return SuiteList(
        name=table.name,
        description=table.description,
        path=path,
        suites=suites,
        budget_s=table.measure.budget_s,
        generations=table.measure.generations,
    )


def refuse_list(path: Path, content: Mapping[str, Any]) -> None:
    """Refuse a list where one suite is wanted.

    Raises:
        SuiteError: The content of the file is a list's.
    """
    if _is_list(content):
        names = content["suites"]
        example = f", such as {shown(names[0])}" if isinstance(names, list) and names else ""
        raise SuiteError(f"{path}: is a list of suites; name one of its suites instead{example}")


def _is_list(content: Mapping[str, Any]) -> bool:
    return "suites" in content and "models" not in content


@dataclass(frozen=True, kw_only=True)
class LoadedSuite:
    """A suite and the hash (sha256, hex) of the text of all files it came from."""

    suite: Suite
    text_sha256: str


def load_suite(path: Path) -> LoadedSuite:
    """Load a suite file and the flag-set files that it names.

    Raises:
        SuiteError: Anything in them is wrong; the message names file, table and key.
    """
    content, raw = read_content(path)
    refuse_list(path, content)
    table = validated(path, content, SuiteFile)
    digest = hashlib.sha256(raw)
    _check_once(f"{path}: flagset_files", table.flagset_files)
    flag_sets = _load_flag_sets(path, table.flagset_files, digest.update)
    variants = tuple(_variant(path, name, variant, flag_sets) for name, variant in table.variants.items())
    _check_known(path, "", "baseline", [table.baseline], table.variants)
    for position, group in enumerate(table.groups):
        _check_known(path, f"[[groups]] #{position + 1}", "variants", group.variants, table.variants)
        _check_once(f"{path}: [[groups]] #{position + 1} variants", group.variants)
    suite = Suite(
        name=table.name,
        description=table.description,
        path=path,
        baseline=table.baseline,
        models=tuple(_model(path, name, model) for name, model in table.models.items()),
        variants=variants,
        devices=tuple(_device(path, name, device) for name, device in table.devices.items()),
        peers=_peers(path, table.peers, table.variants),
        include=tuple(table.matrix.include),
        exclude=tuple(table.matrix.exclude),
        expectations=tuple(
            case_expectation(one, f"{path}: [[expect]] #{position + 1}") for position, one in enumerate(table.expect)
        ),
        groups=tuple(VariantGroup(title=one.title, variants=tuple(one.variants)) for one in table.groups),
        floors=_floors(path, table.floors),
        gates=tuple(_gate(path, name, gate, table.ir) for name, gate in table.gates.items()),
        ir=_ir(path, table.ir),
        storage=table.storage,
        budget_s=table.measure.budget_s,
        generations=table.measure.generations,
    )
    return LoadedSuite(suite=suite, text_sha256=digest.hexdigest())


def _load_flag_sets(suite: Path, files: Iterable[str], digest: Callable[[bytes], None]) -> dict[str, FlagSet]:
    flag_sets: dict[str, FlagSet] = {}
    origin: dict[str, Path] = {}
    for name in files:
        path = _file(suite, f"{suite}:", "flagset_files", name)
        table, raw = read_toml(path, FlagSetFile)
        digest(raw)
        for key, one in table.flagsets.items():
            if key in flag_sets:
                raise SuiteError(f"{path}: [flagsets.{key}] is defined in {origin[key]} too; rename one of them")
            try:
                SpecifierSet(one.toolchains)
            except InvalidSpecifier:
                raise SuiteError(
                    f"{path}: [flagsets.{key}] toolchains: {one.toolchains!r} is not a version specifier; "
                    "write it like '>=3.8,<4'"
                ) from None
            origin[key] = path
            flag_sets[key] = FlagSet(
                name=key,
                description=one.description,
                compile=tuple(one.compile),
                run=tuple(one.run),
                backends=tuple(one.backends),
                toolchains=one.toolchains,
            )
    return flag_sets


def _check_known(path: Path, table: str, key: str, names: Iterable[str], known: Mapping[str, object]) -> None:
    for name in names:
        if name not in known:
            where = f"{table} {key}".strip()
            hint = did_you_mean(name, list(known)) or "; no flagset_files are given"
            raise SuiteError(f"{path}: {where}: there is no {_kind(key)} {name!r}{hint}")


def _check_once(where: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise SuiteError(f"{where}: {name!r} is there twice; remove one of them")


def _kind(key: str) -> str:
    return "flag set" if key == "flagsets" else "variant"


def _variant(path: Path, name: str, table: VariantTable, flag_sets: Mapping[str, FlagSet]) -> Variant:
    _check_known(path, f"[variants.{name}]", "flagsets", table.flagsets, flag_sets)
    return Variant(
        name=name,
        description=table.description,
        flag_sets=tuple(flag_sets[key] for key in table.flagsets),
        compile_flags=tuple(table.flags),
        run_flags=tuple(table.run_flags),
        plugins=tuple(PluginUse(name=one.name, options=one.options) for one in table.plugins),
        tags=tuple(table.tags),
    )


def _device(path: Path, name: str, table: DeviceTable) -> Device:
    where = f"{path}: [devices.{name}]"
    drivers = {uri.split("://", 1)[0] for uri in table.uri}
    if "" in drivers:
        raise SuiteError(f"{where} uri: '' must not be empty")
    if table.vulkan_driver is not None and "vulkan" not in drivers:
        raise SuiteError(f"{where} vulkan_driver is for the URI vulkan, and uri is {shown(table.uri[0])}; remove it")
    if (table.threads or 1) > 1 and table.pin:
        raise SuiteError(f"{where} has pin, for one core, and threads = {table.threads}; remove one of them")
    if (table.threads or 1) > 1 and drivers == {"local-sync"}:
        raise SuiteError(f"{where} threads: local-sync computes on one thread, so use local-task, or remove threads")
    return Device(
        name=name,
        description=table.description,
        uri=table.uri[0],
        more_uris=tuple(table.uri[1:]),
        vulkan_driver=table.vulkan_driver,
        threads=table.threads,
        backend=table.backend,
        compile_flags=tuple(table.compile_flags),
        run_flags=tuple(table.run_flags),
        pin=table.pin,
        tags=tuple(table.tags),
    )


def _peers(path: Path, tables: Sequence[PeerTable], variants: Mapping[str, object]) -> tuple[PeerUse, ...]:
    peers = tuple(PeerUse(name=one.name, label=one.label or one.name, options=one.options) for one in tables)
    labels = [one.label for one in peers]
    for label in labels:
        if label in variants:
            raise SuiteError(f"{path}: peers: {label!r} is the name of a variant; give the peer another label")
        if labels.count(label) > 1:
            raise SuiteError(f"{path}: peers: {label!r} is there twice; give one of them a label of its own")
    return peers


def _ir(path: Path, wanted: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    for phase, ops in wanted.items():
        if phase not in PHASES:
            raise SuiteError(f"{path}: [ir]: there is no phase {phase!r}{did_you_mean(phase, PHASES)}")
        _check_once(f"{path}: [ir] {phase}", ops)
    try:
        check_wanted(wanted)
    except UsageError as error:
        raise SuiteError(f"{path}: [ir]: {error}") from None
    return {phase: tuple(ops) for phase, ops in wanted.items()}


def _floors(path: Path, floors: Mapping[str, float]) -> dict[str, float]:
    for name in floors:
        _check_metric(path, f"[floors] {name}", name)
        if METRICS[name].exact:
            raise SuiteError(
                f"{path}: [floors] {name}: a metric that is exact has no floor; remove it, or say in a [gates] table "
                "how much it may change"
            )
    return dict(floors)


def _gate(path: Path, name: str, table: GateTable, ir: Mapping[str, Sequence[str]]) -> Gate:
    where = f"[gates.{name}] metric"
    counted = [f"{phase}/{op}" for phase, ops in ir.items() for op in ops]
    phase, slash, op = table.metric.partition("/")
    if not (slash and phase in PHASES):
        _check_metric(path, where, table.metric)
    elif table.metric not in counted:
        hint = did_you_mean(table.metric, counted, f"; add {shown(op)} to {phase} in [ir]")
        raise SuiteError(f"{path}: {where}: {shown(table.metric)} is not counted{hint}")
    return Gate(
        name=name,
        metric=table.metric,
        cases=table.cases,
        direction=table.direction,
        relative=table.relative,
        absolute=table.absolute,
    )


def _check_metric(path: Path, where: str, name: str) -> None:
    if name not in METRICS:
        raise SuiteError(f"{path}: {where}: there is no metric {shown(name)}{did_you_mean(name, list(METRICS))}")


def _model(path: Path, name: str, table: ModelTable) -> Model:
    where = f"{path}: [models.{name}]"
    sources = [key for key in ("builder", "mlir", "onnx") if getattr(table, key) is not None]
    if len(sources) != 1:
        found = " and ".join(sources) or "none"
        raise SuiteError(f"{where} needs exactly one of builder, mlir and onnx, and has {found}")
    source = sources[0]
    if source == "builder":
        for key, are, them in (("function", "is", "it"), ("inputs", "are", "them"), ("parameters", "are", "them")):
            if getattr(table, key):
                raise SuiteError(
                    f"{where} {key} {are} for mlir and onnx files; a builder gives its own, so remove {them}"
                )
    elif table.params:
        raise SuiteError(f"{where} params are for builders; remove them or name a builder")
    if source == "mlir" and not (table.function and table.inputs is not None):
        missing = "inputs are" if table.function else "function is"
        raise SuiteError(f"{where} {missing} missing; an mlir file needs its entry function and inputs")
    if table.opset is not None and source != "onnx":
        raise SuiteError(f"{where} opset is for onnx files; remove it")
    if table.static and (source != "onnx" or not table.inputs):
        raise SuiteError(f"{where} static is for onnx files whose inputs are given; remove it, or give inputs")
    if table.reference == "onnxruntime" and source == "mlir":
        raise SuiteError(f'{where} reference = "onnxruntime" is for onnx files and builders; leave it out')
    return Model(
        name=name,
        description=table.description,
        builder=table.builder,
        params=table.params,
        mlir=_file(path, where, "mlir", table.mlir) if table.mlir is not None else None,
        onnx=_file(path, where, "onnx", table.onnx) if table.onnx is not None else None,
        opset=table.opset,
        static=table.static,
        function=table.function,
        inputs=tuple(
            _input(path, f"{where} inputs[{position}]", one, position)
            for position, one in enumerate(table.inputs or ())
        ),
        parameters={scope: _file(path, where, f"parameters.{scope}", file) for scope, file in table.parameters.items()},
        expected=tuple(_file(path, where, "expected", file) for file in table.expected),
        reference=table.reference,
        tolerance=Tolerance(relative=table.tolerance.relative, absolute=table.tolerance.absolute),
        expectation=model_expectation(name, table.expect, f"{where} expect"),
        tags=tuple(table.tags),
    )


def _file(suite: Path, where: str, key: str, name: str) -> Path:
    path = suite.parent / name
    try:
        found = path.is_file()
    except (OSError, ValueError) as error:  # such as a name that is longer than the system takes
        reason = getattr(error, "strerror", None) or error
        raise SuiteError(f"{where} {key}: {shown(name)} cannot be looked up ({reason}); check the path") from None
    if not found:
        problem = f"there is no file {name} beside the suite; check the path" if name else "the path is empty; add it"
        raise SuiteError(f"{where} {key}: {problem}")
    return path


def _input(path: Path, where: str, table: InputTable, position: int) -> Input:
    given = [key for key in ("seed", "value", "npy") if getattr(table, key) is not None]
    if len(given) > 1:
        raise SuiteError(f"{where} has {' and '.join(given)}; keep one of them")
    if table.npy is not None:
        if table.shape is not None:
            raise SuiteError(f"{where} has shape and npy; the .npy file says its shape, so remove shape")
        return Input(dtype=table.dtype, fill="npy", path=_file(path, where, "npy", table.npy))
    if table.shape is None:
        raise SuiteError(f"{where} shape is missing; add it, or values from an npy file")
    shape = tuple(table.shape)
    if table.value is not None:
        return Input(shape=shape, dtype=table.dtype, fill="constant", value=table.value)
    return Input(shape=shape, dtype=table.dtype, seed=position if table.seed is None else table.seed)
