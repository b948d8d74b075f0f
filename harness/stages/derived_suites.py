"""Suites that the harness writes: some variants of a suite's models, in a file that runs like any other.

`harness ablate`, `harness bisect --over flags` and `harness tune` measure such suites, so whoever wants to can repeat
what they did.
"""

import hashlib
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import tomli_w

from harness.bisect.variants import CompileConfig, Use, uses_of
from harness.cache import environments_root
from harness.errors import CaseError, UsageError
from harness.ir.dump import ask
from harness.plugins import PLUGINS
from harness.plugins.options import switches_of
from harness.stages.models import tensor_of
from harness.stages.options import AblateOptions, BenchOptions, compile_limits
from harness.stages.prepare import find_named, require_known
from harness.store.files import writing
from harness.suite.load import Variant, load_suite
from harness.suite.model_files import moved_model, moved_path, read_suite_table
from harness.suite.schema import LONGEST_NAME, Dtype
from harness.toolchain import Toolchain, find_toolchain, get_toolchains, releases_named
from harness.toolchain.tools import merge_flags

# Where a suite does not say which ops to count: buffers that a program asks for, what fills and copies them, and what
# a dispatch allocates for itself.
DEFAULT_IR: Mapping[str, Sequence[str]] = {
    "input": ["tensor.empty", "linalg.fill", "linalg.transpose", "linalg.matmul", "linalg.generic"],
    "flow": ["flow.tensor.update"],
    "bufferized": ["executables:memref.alloc*"],
}


def config_of(variant: Variant) -> CompileConfig:
    """How a variant of a suite compiles and runs, its flag sets taken apart into their flags."""
    return CompileConfig(
        flags=merge_flags(*(flag_set.compile for flag_set in variant.flag_sets), variant.flags),
        run_flags=merge_flags(*(flag_set.run for flag_set in variant.flag_sets), variant.run_flags),
        plugins=uses_of((plugin.name, plugin.options) for plugin in variant.plugins),
    )


def derived_suite(
    origin: Path,
    folder: Path,
    variants: Mapping[str, CompileConfig],
    *,
    models: Sequence[str],
    devices: Sequence[str],
    named: Sequence[str],  # Of what its name is made, behind the suite's own
    description: str,
    keys: Sequence[str] = (),  # Tables of the suite that it has too
    **more: Any,
) -> str:
    """The text of a suite for a folder: these variants, of which the first is the baseline, of models of a suite."""
    table, _ = read_suite_table(origin)
    content = table.model_dump(exclude_none=True, exclude_defaults=True, by_alias=True)
    for model in content["models"].values():
        model.pop("expect", None)  # what is known to fail of the suite's own variants says nothing about these
    suite = {
        "name": joined_name([table.name, *named]),
        "description": description,
        "baseline": next(iter(variants)),
        "models": {name: moved_model(content["models"][name], origin, folder) for name in models},
        "variants": {name: config.table() for name, config in variants.items()},
        "devices": {name: content["devices"][name] for name in devices},
        **{key: content[key] for key in keys if content.get(key)},
    }
    return tomli_w.dumps({**suite, **more})


def joined_name(parts: Sequence[str]) -> str:
    """A name as suites may have it, of names that may hold anything."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", "-".join(parts))[:LONGEST_NAME]


# --- `harness ablate`: each switch of a plugin is a variant of its own ---


def write_ablation(options: AblateOptions) -> Path:
    """Write the suite of an ablation into its folder of results; its file."""
    path, plugin, suite = options.suite, options.plugin, load_suite(options.suite)
    models = tuple(dict.fromkeys(options.models))
    devices = tuple(dict.fromkeys(options.devices)) or (suite.devices[0].name,)
    for name in models:
        find_named(path, "model", name, suite.models)
    for name in devices:
        find_named(path, "device", name, suite.devices)
    switches = switches_of(PLUGINS.find(plugin).options)
    if not switches:
        raise UsageError(
            f"plugin {plugin!r} has no options that are true or false, so there is nothing to ablate; "
            "compare a variant with it and one without"
        )
    base = config_of(find_named(path, "variant", suite.baseline, suite.variants))
    own = next((use.options for use in base.plugins if use.name == plugin), {})  # of which the others stay
    base = replace(base, plugins=tuple(use for use in base.plugins if use.name != plugin))

    def step(switched: Mapping[str, bool]) -> CompileConfig:
        return replace(base, plugins=(*base.plugins, Use(name=plugin, options={**own, **switched})))

    text = derived_suite(
        path,
        options.results,
        {name: base if switched is None else step(switched) for name, switched in ablation_steps(switches).items()},
        models=models,
        devices=devices,
        named=["ablate", plugin],
        description=f"What each option of {plugin} does: added to {suite.baseline} alone, left out alone, and all",
        ir={phase: list(ops) for phase, ops in (suite.ir or DEFAULT_IR).items()},
        measure={"budget_s": options.budget_s or suite.budget_s, "generations": suite.generations},
    )
    # Two ablations of one plugin and model may differ by their devices.
    name = joined_name([suite.name, "ablate", plugin, *models, *(devices if options.devices else [])])
    return _write(options.results / f"{name}.toml", text)


def _write(file: Path, text: str) -> Path:
    with writing(file, "choose another place"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return file


def ablation_steps(names: Sequence[str]) -> dict[str, dict[str, bool] | None]:
    """Variants by name, and how each has the switches; None for the one without the plugin.

    The plugin left out, all switches off, each alone, all but each, and all; what would be there twice is left out.
    """
    steps: dict[str, dict[str, bool] | None] = {"without": None, "none": dict.fromkeys(names, False)}
    if len(names) > 1:
        steps |= {f"only-{name}": {other: other == name for other in names} for name in names}
    if len(names) > 2:
        steps |= {f"no-{name}": {other: other != name for other in names} for name in names}
    return {**steps, "all": dict.fromkeys(names, True)}


# --- `harness bench`: a model's file and several sets of flags; each set is a variant ---


_CPU = {
    "backend": "llvm-cpu",
    "compile_flags": [
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
    ],
}
_DEVICES: Mapping[str, Mapping[str, Any]] = {
    "cpu": {"uri": "local-sync", **_CPU, "pin": True},
    "cpu-threads": {"uri": "local-task", **_CPU},
    "vulkan": {"uri": "vulkan", "backend": "vulkan-spirv", "compile_flags": ["--iree-hal-target-device=vulkan"]},
    "cuda": {"uri": "cuda", "backend": "cuda", "compile_flags": ["--iree-hal-target-device=cuda"]},
    "hip": {"uri": "hip", "backend": "rocm", "compile_flags": ["--iree-hal-target-device=hip"]},
}
_BASELINE = "stock"
_LONGEST_VARIANT = 40
_INPUT = re.compile(r"(?P<sizes>(?:\d+x)*)(?P<dtype>[a-z]+\d*)(?:=(?P<value>[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?))?")


def write_bench(options: BenchOptions, say: Callable[[str], None]) -> tuple[Path, tuple[str, ...]]:
    """Write the suite of a comparison of flags or of toolchains; its file, and the releases and labels of these."""
    save, stem = options.save if options.folder is None else options.folder / "suite.toml", options.model.stem
    releases = releases_named(options.toolchains, say)
    alone, folder = len({*releases}) > 1, options.results if save is None else save.parent
    variants = name_variants(options.flags, alone=alone)
    if options.save is not None and options.save.exists():
        raise UsageError(f"{options.save}: is there already; give --save a new file or folder")
    kind = _kind_of(options.model)
    toolchains = get_toolchains(releases, root=environments_root(), on_install=say) or (find_toolchain(),)
    for flags in variants.values():
        require_known(f"--flags {flags!r}", shlex.split(flags), toolchains)
    content = {
        "name": _named(f"bench-{stem}" if options.save is None else options.save.stem),
        "description": f"{options.model.name}: {'; '.join(flags or 'no flags' for flags in variants.values())}",
        "baseline": next(iter(variants)),
        "models": {_named(stem): _model(options, kind, folder, toolchains[0])},
        "variants": {name: {"flags": shlex.split(flags)} if flags else {} for name, flags in variants.items()},
        "devices": {options.device: _DEVICES[options.device]},
        "measure": {"budget_s": options.budget_s},
    }
    text = tomli_w.dumps(content)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return _write(save or folder / f"{joined_name(['bench', stem, digest])}.toml", text), releases


def _named(stem: str) -> str:
    return joined_name([stem]).lstrip("._+-") or "bench"


def name_variants(sets: Sequence[str], *, alone: bool = False) -> dict[str, str]:
    """Sets of flags by names that are made of them: `--iree-opt-level=O3` -> `iree-opt-level-O3`; no flags: `stock`."""
    sets = [" ".join(flags.split()) for flags in sets] or [""]
    if len(sets) == 1 and not alone:
        if not sets[0]:
            raise UsageError("there is nothing to compare; give --flags, or --toolchain for each of several toolchains")
        sets = ["", *sets]  # one set is compared with no flags
    if len(set(sets)) < len(sets):
        raise UsageError("--flags: two sets are equal, so there is nothing to compare; give each set of flags once")
    names: dict[str, str] = {}
    for flags in sets:
        try:
            shlex.split(flags)
        except ValueError as error:
            raise UsageError(f"--flags {flags!r}: {error}; close the quotation") from None
        name = re.sub(r"[^A-Za-z0-9.]+", "-", flags).strip("-.")[:_LONGEST_VARIANT].strip("-.") or _BASELINE
        alike = sum(other == name or other.startswith(f"{name}+") for other in names)
        names[f"{name}+{alike + 1}" if alike else name] = flags
    return names


def _kind_of(model: Path) -> str:
    kind = {".mlir": "mlir", ".mlirbc": "mlir", ".onnx": "onnx"}.get(model.suffix)
    if kind is None or not model.is_file():
        what = "there is no such file" if kind is not None else "is no model's file"
        raise UsageError(f"{model}: {what}; give one that ends in .mlir, .mlirbc or .onnx")
    return kind


def _model(options: BenchOptions, kind: str, folder: Path, toolchain: Toolchain) -> dict[str, Any]:
    model = options.model
    table: dict[str, Any] = {kind: moved_path(str(model.resolve()), Path("x"), folder)}
    inputs = [_input(text, folder) for text in options.model_inputs]
    function = options.function
    if kind == "mlir" and (function is None or not inputs):
        function, inputs = _signature(model, function, inputs, toolchain)
    if function is not None:
        table["function"] = function
    if inputs or kind == "mlir":
        table["inputs"] = inputs
    return table


def _input(text: str, folder: Path) -> dict[str, Any]:
    if text.endswith(".npy"):
        return {"npy": moved_path(str(Path(text).resolve()), Path("x"), folder)}
    found = _INPUT.fullmatch(text)
    scalar = found is not None and not found["sizes"]
    if found is None or found["dtype"] not in get_args(Dtype) or (scalar and found["value"] is None):
        raise UsageError(f"--model-input {text!r}: is no argument; write 4x8xf32, 4x8xf32=1.5, i32=3 or values.npy")
    table: dict[str, Any] = {"dtype": found["dtype"]}
    if not scalar:
        table["shape"] = [int(size) for size in found["sizes"].split("x")[:-1]]
    return table if found["value"] is None else {**table, "value": float(found["value"])}


def _signature(
    model: Path, function: str | None, inputs: list[dict[str, Any]], toolchain: Toolchain
) -> tuple[str, list[dict[str, Any]]]:
    """The entry function of a file of MLIR, and its arguments where none are given."""
    try:
        functions = ask("entries", {"input": model}, "", toolchain=toolchain, limits=compile_limits())["input"]
    except CaseError as error:
        raise UsageError(f"{model}: {error}") from None
    public = (name for name, each in functions.items() if each["public"])
    name = function if function in functions else next(public, None) if function is None else None
    if name is None:
        which = f"function @{function}" if function is not None else "public function"
        raise UsageError(f"{model}: no {which} is found in it; give --function, and --model-input for each argument")
    found = []
    for text in functions[name]["arguments"] if not inputs else ():
        tensor = tensor_of(text)
        if tensor is None or None in tensor.shape or tensor.dtype not in get_args(Dtype):
            raise UsageError(
                f"{model}: @{name} has an argument of type {text}; give --model-input for each argument, as in 4x8xf32"
            )
        found.append({"shape": list(tensor.shape), "dtype": tensor.dtype})
    return name, inputs or found
