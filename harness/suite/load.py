"""From suite.toml to a checked Suite, and from a list to a SuiteList: every name in them refers to what exists."""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.errors import SuiteError, UsageError
from harness.ir.counts import check_wanted
from harness.metrics import FLOORS, METRICS, PHASES
from harness.models.model import Expectation, Input, Model, Tolerance
from harness.records.case import Gate, VariantGroup
from harness.suite.model_files import read_suite_table
from harness.suite.schema import (
    DeviceTable,
    FlagSetFile,
    FlagSetTable,
    GateTable,
    InputTable,
    ListFile,
    ModelTable,
    PeerTable,
    SuiteFile,
    VariantFile,
    VariantTable,
)
from harness.suite.toml_file import (
    errors_name,
    file_beside,
    read_content,
    read_toml,
    refuse,
    require_known,
    require_once,
    require_specifier,
    shown,
    validated,
    value_of,
)
from harness.text import did_you_mean


class FlagSet(FlagSetTable):
    """A named list of flags, from flagsets/*.toml."""

    name: str


class Variant(VariantTable):
    """A named way to compile and run: flag sets first, then its own flags, then plugins."""

    name: str
    flag_sets: tuple[FlagSet, ...] = ()


class Device(DeviceTable):
    """Where a module runs."""

    name: str
    host: str = ""  # The only one that may measure it, where it is one of several that `each` made; "": see `on`

    @property
    def uri(self) -> str:
        """Where arguments are put: `local-sync`, `local-task`, `vulkan`, `cuda://0`, ..."""
        return self.uris[0]

    @property
    def more_uris(self) -> tuple[str, ...]:
        """The other devices of a program that runs on several, in their order."""
        return self.uris[1:]


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A checked suite: every name in it refers to something that exists."""

    name: str
    description: str
    path: Path
    baseline: str
    models: tuple[Model, ...]
    variants: tuple[Variant, ...]
    devices: tuple[Device, ...]
    peers: tuple[PeerTable, ...] = ()
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    groups: tuple[VariantGroup, ...] = ()
    # By metric, the relative change below which nothing is called changed, in place of the metric's own.
    floors: Mapping[str, float] = field(default_factory=dict)
    gates: tuple[Gate, ...] = ()
    # By phase of the compiler, the ops that are counted; see harness.ir.
    ir: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    storage: bool = False  # Whether to tell what encoded tensors cost in memory
    benchmark_module: bool = True  # Whether iree-benchmark-module is asked too
    budget_s: float = 120.0  # Seconds of timed rounds for the whole run
    generations: int = 5  # Fresh sets of worker processes, which are the independent samples
    text_sha256: str = field(default="", compare=False)  # Of the text of all files that it came from


@dataclass(frozen=True, kw_only=True)
class SuiteList:
    """Suites that are run one after the other, each into a run of its own."""

    name: str
    description: str
    path: Path
    suites: tuple[Path, ...]  # Their files, as paths from the current folder
    budget_s: float | None = None  # Seconds of timed rounds for each of them; None: what the suite says
    generations: int | None = None  # For each of them; None: what the suite says


def find_list(path: Path) -> SuiteList | None:
    """The list that a file holds; None where it is no list, but for example a suite."""
    content, _ = read_content(path)
    if not _is_list(content):
        return None
    table = validated(path, content, ListFile)
    with errors_name(path):
        require_once("suites", [os.path.normpath(name) for name in table.suites])
    suites = tuple(path.parent / name for name in table.suites)
    return value_of(SuiteList, table, path=path, suites=suites, **table.measure.model_dump(exclude_unset=True))


def _is_list(content: Mapping[str, Any]) -> bool:
    return "suites" in content and "models" not in content


def load_suite(path: Path) -> Suite:
    """Load a suite file, and the files of flag sets, variants and models that it names."""
    content, raw = read_content(path)
    if _is_list(content):
        raise SuiteError(f"{path}: is a list of suites; name one of its suites instead")
    table, model_files = read_suite_table(path)
    flagset_files = _files(path, "flagset_files", table.flagset_files)
    flag_sets = load_flag_sets(flagset_files)
    table, origins = with_variant_files(path, table)
    for name, file in origins.items():
        with errors_name(file):
            _variant(name, table.variants[name], flag_sets)
    with errors_name(path):
        suite = _suite(path, table, flag_sets)
    digest = hashlib.sha256(raw)
    for file in (*flagset_files, *dict.fromkeys(origins.values()), *model_files):
        digest.update(file.read_bytes())
    return replace(suite, text_sha256=digest.hexdigest())


def with_variant_files(path: Path, table: SuiteFile) -> tuple[SuiteFile, dict[str, Path]]:
    """A suite's table with the variants of the files that it names after its own, and the file of each of these."""
    variants, origins = dict(table.variants), dict[str, Path]()
    for origin in _files(path, "variant_files", table.variant_files):
        file, _ = read_toml(origin, VariantFile)
        for name in file.variants:
            if name in variants:
                first = origins.get(name, path)
                raise SuiteError(f"{origin}: [variants.{name}] is defined in {first} too; rename one of them")
        variants |= file.variants
        origins |= dict.fromkeys(file.variants, origin)
    return table.model_copy(update={"variants": variants}), origins


def _files(path: Path, key: str, names: Sequence[str]) -> list[Path]:
    with errors_name(path):
        require_once(key, names)
        return [file_beside(path, key, name) for name in names]


def load_flag_sets(files: Iterable[Path]) -> dict[str, FlagSet]:
    """The flag sets of some files, by name."""
    flag_sets: dict[str, FlagSet] = {}
    origin: dict[str, Path] = {}
    for path in files:
        file, _ = read_toml(path, FlagSetFile)
        for name, table in file.flagsets.items():
            with errors_name(path):
                if name in flag_sets:
                    raise SuiteError(f"[flagsets.{name}] is defined in {origin[name]} too; rename one of them")
                require_specifier(f"[flagsets.{name}] toolchains", table.toolchains)
            flag_sets[name] = FlagSet.model_construct(**dict(table), name=name)
            origin[name] = path
    return flag_sets


def _suite(path: Path, table: SuiteFile, flag_sets: Mapping[str, FlagSet]) -> Suite:
    variants = tuple(_variant(name, each, flag_sets) for name, each in table.variants.items())
    _require_names(table)
    _require_metrics(table)
    return value_of(
        Suite,
        table,
        path=path,
        models=tuple(_model(path, name, each) for name, each in table.models.items()),
        variants=variants,
        devices=tuple(_device(name, each) for name, each in table.devices.items()),
        expectations=tuple(Expectation(cases=each.cases, message=each.fails) for each in table.expect),
        groups=tuple(value_of(VariantGroup, group) for group in table.groups),
        gates=tuple(_gate(name, gate) for name, gate in table.gates.items()),
        ir={phase: tuple(ops) for phase, ops in table.ir.items()},
        include=tuple(table.matrix.include),
        exclude=tuple(table.matrix.exclude),
        **dict(table.measure),
    )


def _gate(name: str, table: GateTable) -> Gate:
    of_change = table.model_fields_set & {"relative", "absolute", "direction"}
    refuse(
        f"[gates.{name}]",
        (
            table.at_most is not None and bool(of_change),
            f"at_most limits a value, and {' and '.join(sorted(of_change))} a change; make it two gates",
        ),
    )
    return value_of(Gate, table, name=name)


def _variant(name: str, table: VariantTable, flag_sets: Mapping[str, FlagSet]) -> Variant:
    require_known(f"[variants.{name}] flagsets", "flag set", table.flagsets, flag_sets)
    require_specifier(f"[variants.{name}] toolchains", table.toolchains)
    own = tuple(flag_sets[key] for key in table.flagsets)
    return Variant.model_construct(**dict(table), name=name, flag_sets=own)


def _device(name: str, table: DeviceTable) -> Device:
    drivers = {uri.split("://", 1)[0] for uri in table.uris}
    threads = table.threads or 1
    refuse(
        f"[devices.{name}]",
        ("" in drivers, "uri: '' must not be empty"),
        (
            table.vulkan_driver is not None and "vulkan" not in drivers,
            f"vulkan_driver is for the URI vulkan, and uri is {shown(table.uris[0])}; remove it",
        ),
        (threads > 1 and table.pin, f"has pin, for one core, and threads = {threads}; remove one of them"),
        (
            threads > 1 and drivers == {"local-sync"},
            "threads: local-sync computes on one thread, so use local-task, or remove threads",
        ),
    )
    return Device.model_construct(**dict(table), name=name)


def _require_names(table: SuiteFile) -> None:
    require_known("baseline", "variant", [table.baseline], table.variants)
    labels = [peer.case_label for peer in table.peers]
    for label in labels:
        refuse(
            f"peers: {label!r}",
            (label in table.variants, "is the name of a variant; give the peer another label"),
            (labels.count(label) > 1, "is there twice; give one of them a label of its own"),
        )
    for number, expected in enumerate(table.expect, start=1):
        if (expected.fails is not None) == expected.mismatch:
            has = "both" if expected.mismatch else "neither"
            raise SuiteError(f"[[expect]] #{number} needs exactly one of fails and mismatch = true, and has {has}")
    for number, group in enumerate(table.groups, start=1):
        require_known(f"[[groups]] #{number} variants", "variant", group.variants, table.variants)
        require_once(f"[[groups]] #{number} variants", group.variants)


def _require_metrics(table: SuiteFile) -> None:
    """Refuse floors and gates of metrics that there are not or that nobody counts, and ops at no phase."""
    try:
        check_wanted(table.ir)
    except UsageError as error:
        raise SuiteError(f"[ir]: {error}") from None
    for metric in table.floors:
        _require_metric(f"[floors] {metric}", metric)
        if metric not in FLOORS:
            raise SuiteError(
                f"[floors] {metric}: is counted, and one more is a change; remove it, or say in a [gates] table how "
                "much it may change"
            )
    counted = [f"{phase}/{op}" for phase, ops in table.ir.items() for op in ops]
    for name, gate in table.gates.items():
        where, (phase, _, op) = f"[gates.{name}] metric", gate.metric.partition("/")
        if not op or phase not in PHASES:
            _require_metric(where, gate.metric)
        elif gate.metric not in counted:
            hint = did_you_mean(gate.metric, counted, f"; add {shown(op)} to {phase} in [ir]")
            raise SuiteError(f"{where}: {shown(gate.metric)} is not counted{hint}")


def _require_metric(where: str, name: str) -> None:
    if name not in METRICS:
        raise SuiteError(f"{where}: there is no metric {shown(name)}{did_you_mean(name, list(METRICS))}")


# --- Models, with their files looked up beside the suite ---


def _model(path: Path, name: str, table: ModelTable) -> Model:
    where = f"[models.{name}]"
    sources = [key for key in ("builder", "mlir", "onnx") if getattr(table, key) is not None]
    builder, mlir, onnx = (sources == [key] for key in ("builder", "mlir", "onnx"))
    for_files = "for mlir and onnx files; a builder gives its own, so remove"
    needs = "missing; an mlir file needs its entry function and inputs"
    refuse(
        where,
        (len(sources) != 1, f"needs exactly one of builder, mlir and onnx, and has {' and '.join(sources) or 'none'}"),
        (builder and bool(table.function), f"function is {for_files} it"),
        (builder and bool(table.inputs), f"inputs are {for_files} them"),
        (builder and bool(table.parameters), f"parameters are {for_files} them"),
        (not builder and bool(table.params), "params are for builders; remove them or name a builder"),
        (mlir and not table.function, f"function is {needs}"),
        (mlir and table.inputs is None, f"inputs are {needs}"),
        (table.opset is not None and not onnx, "opset is for onnx files; remove it"),
        (
            table.static and not (onnx and table.inputs),
            "static is for onnx files whose inputs are given; remove it, or give inputs",
        ),
        (
            table.reference == "onnxruntime" and mlir,
            'reference = "onnxruntime" is for onnx files and builders; leave it out',
        ),
        (
            table.reference == "expected" and not table.expected,
            'reference = "expected" is for expected files; name them, or leave it out',
        ),
        (bool(table.why) and table.check != "none", 'why is for check = "none"; remove it'),
    )
    return value_of(
        Model,
        table,
        name=name,
        mlir=file_beside(path, f"{where} mlir", table.mlir) if table.mlir is not None else None,
        onnx=file_beside(path, f"{where} onnx", table.onnx) if table.onnx is not None else None,
        inputs=tuple(
            _input(path, f"{where} inputs[{position}]", argument, position)
            for position, argument in enumerate(table.inputs or ())
        ),
        parameters={
            scope: file_beside(path, f"{where} parameters.{scope}", name) for scope, name in table.parameters.items()
        },
        expected=tuple(file_beside(path, f"{where} expected", file) for file in table.expected),
        tolerance=value_of(Tolerance, table.tolerance) if table.tolerance is not None else None,
        integers=table.values == "integers",
        expectation=None if table.expect is None else _expected_of_model(name, table.expect),
    )


def _expected_of_model(model: str, text: str) -> Expectation:
    """What `mismatch` or `fail: part of the message` says of all cases of a model."""
    if text in ("mismatch", "fail"):
        return Expectation(cases=f"{model}/*", message="" if text == "fail" else None)
    message = text.removeprefix("fail:").strip()
    if not text.startswith("fail:") or not message:
        raise SuiteError(
            f"[models.{model}] expect: {shown(text)} must be 'mismatch', 'fail', or 'fail: ' and a part of the message"
        )
    return Expectation(cases=f"{model}/*", message=message)


def _input(path: Path, where: str, table: InputTable, position: int) -> Input:
    fills = [key for key in ("seed", "value", "npy") if getattr(table, key) is not None]
    is_scalar = table.shape is None and table.npy is None
    refuse(
        where,
        (len(fills) > 1, f"has {' and '.join(fills)}; keep one of them"),
        (
            table.npy is not None and table.shape is not None,
            "has shape and npy; the .npy file says its shape, so remove shape",
        ),
        (
            table.shape is None and table.npy is None and table.value is None,
            "shape is missing; add it, values from an npy file, or the value of an argument that is no tensor",
        ),
        (
            is_scalar and table.dtype in ("f16", "bf16"),
            f"is a number of {table.dtype}, which IREE takes in tensors only",
        ),
        (table.dtype == "index" and not is_scalar, "dtype: index is for an argument that is no tensor; take i64"),
    )
    if table.npy is not None:
        return Input(dtype=table.dtype or "", fill="npy", path=file_beside(path, f"{where} npy", table.npy))
    shape, dtype = tuple(table.shape or ()), table.dtype or "f32"
    if table.value is not None:
        return Input(shape=shape, scalar=is_scalar, dtype=dtype, fill="constant", value=table.value)
    return Input(shape=shape, dtype=dtype, seed=position if table.seed is None else table.seed)
