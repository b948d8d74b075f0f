"""The TOML formats of suites and flag sets, as pydantic models: what editors complete and what loading checks.

docs/*.schema.json are made from these classes by `harness schema`.
"""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, Strict, field_serializer, field_validator, model_validator

from harness.metrics import FLOORS, METRICS, PHASES
from harness.records.case import Direction

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"
OP_PATTERN = r"^[A-Za-z0-9_.$*?!:\[\]-]+$"
FLAG_PATTERN = r"^--?[A-Za-z]"
LONGEST_NAME = 100

Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=LONGEST_NAME)]
Op = Annotated[str, Field(pattern=OP_PATTERN, min_length=1, max_length=LONGEST_NAME)]
Dtype = Literal["f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "i1", "index"]
Flag = Annotated[
    str, Field(pattern=FLAG_PATTERN, description="One flag as the tool takes it, e.g. --iree-opt-level=O3.")
]
Pattern = Annotated[
    str,
    Field(
        min_length=1,
        description="A shell pattern on case names, which read model/variant@device; * ? and [abc] match as usual.",
    ),
]

Floor = Annotated[float, Field(gt=0, lt=1)]
_T = TypeVar("_T")
# A list of TOML, as a value that nobody changes.
Many = Annotated[tuple[_T, ...], Strict(strict=False)]

# What pydantic leaves out of the JSON Schema of a dict[Name, ...], so that editors see a bad name too.
_NAMED: dict[str, JsonValue] = {"additionalProperties": False, "propertyNames": {"maxLength": LONGEST_NAME}}

# What editors offer and underline; loading checks these names itself, since it can say what was meant.
_METRIC: dict[str, JsonValue] = {"anyOf": [{"enum": [*METRICS]}, {"pattern": f"^({'|'.join(PHASES)})/."}]}
_PHASES: dict[str, JsonValue] = {"propertyNames": {"enum": [*PHASES]}}
_RELEASES = "Releases it is for, as a version specifier: '>=3.8,<4'; empty: all."
_EXPECT: dict[str, JsonValue] = {"anyOf": [{"enum": ["mismatch", "fail"]}, {"pattern": "^fail: ."}, {"type": "null"}]}
_FLOORED: dict[str, JsonValue] = {"propertyNames": {"enum": list(FLOORS)}}


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class InputTable(_Table):
    """One argument of the entry function."""

    shape: list[Annotated[int, Field(ge=0, le=2**40)]] | None = Field(
        None,
        description="Static sizes, outermost first; [] is a tensor of one element. Left out with npy, and with value "
        "where the argument is a number and no tensor: { dtype = 'i32', value = 3 } for %n: i32.",
    )
    dtype: Dtype | None = Field(
        None,
        description="MLIR's name of the element type, by default f32 or what npy holds; index is for numbers.",
    )
    seed: int | None = Field(
        None,
        ge=0,
        description="Random values from this seed; by default the input's position, so that no two are alike.",
    )
    value: float | None = Field(None, description="This constant everywhere instead of random values.")
    npy: str | None = Field(None, description="Values from this .npy file, relative to the suite.")


class ToleranceTable(_Table):
    """Outputs agree when |a - b| <= absolute + relative * |b| everywhere; of integers only absolute counts."""

    relative: float = Field(1e-4, ge=0, allow_inf_nan=False)
    absolute: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        description="By default, relative times the root mean square of the right values.",
    )


class ModelTable(_Table):
    """A program to compile; exactly one of builder, mlir and onnx."""

    description: str = ""
    builder: str | None = Field(None, description="A registered builder, e.g. residual-dense-block.")
    params: dict[str, Any] = Field(default_factory=dict, description="The builder's parameters.")
    mlir: str | None = Field(None, description="An .mlir or .mlirbc file, relative to the suite.")
    onnx: str | None = Field(None, description="An .onnx file, relative to the suite; imported by iree-import-onnx.")
    opset: int | None = Field(None, ge=1, description="Upgrade the ONNX file to this opset (default: at least 17).")
    static: bool = Field(
        False, description="Write the shapes of inputs into an onnx file whose own are dynamic, and fold what follows."
    )
    function: str | None = Field(None, description="Entry function of an mlir or onnx file.")
    inputs: list[InputTable] | None = Field(
        None, description="The entry function's arguments, in order; [] where it has none."
    )
    parameters: dict[str, str] = Field(
        default_factory=dict, description="External weights by scope: { model = 'weights.irpa' }."
    )
    expected: list[str] = Field(default_factory=list, description=".npy files with the right outputs, in order.")
    reference: Literal["auto", "baseline", "onnxruntime", "expected"] = Field(
        "auto",
        description="What judges outputs beside the float64 reference when no expected files are given: ONNX Runtime "
        "on the same inputs, or nothing (baseline). auto: ONNX Runtime where the model is in ONNX and it is installed. "
        "expected: the expected files alone judge, within tolerance.",
    )
    check: Literal["auto", "none"] = Field(
        "auto",
        description="auto: outputs are held against the float64 reference; where that cannot evaluate the program, "
        "against IREE's interpreter. none: against nothing, for the reason that why gives.",
    )
    check_seconds: float = Field(20.0, gt=0, le=86400, description="What the float64 reference may take.")
    why: str = Field("", description='Why outputs are not checked, with check = "none"; reports show it.')
    values: Literal["normal", "integers"] = Field(
        "normal",
        description="What random floats are: standard normal, or small whole numbers, with which sums are exact and "
        "outputs are compared bit for bit.",
    )
    tolerance: ToleranceTable | None = Field(
        None,
        description="By how much outputs may be off in any case; by default, by what the program's rounding gives.",
    )
    expect: str | None = Field(
        None,
        description="How IREE is known to fail on it, under every variant and device: 'fail: part of the message', "
        "'mismatch' where its outputs are wrong, or 'fail' for any of these.",
        json_schema_extra=_EXPECT,
    )
    tags: list[Name] = Field(default_factory=list)


class PluginTable(_Table):
    """A registered preprocessing plugin: its name, or a table of name and options."""

    name: str = Field(min_length=1, description="Its registered name, e.g. share-concat.")
    options: dict[str, Any] = Field(default_factory=dict, description="The plugin's options.")

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value

    @property
    def with_options(self) -> str:
        """How reports name it: `tuned(vector_width = 16)`, or the bare name."""
        options = ", ".join(
            f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}"
            for key, value in self.options.items()
        )
        return f"{self.name}({options})" if options else self.name


class PeerTable(PluginTable):
    """A registered peer: its name, or a table of name, options and label."""

    name: str = Field(min_length=1, description="Its registered name, e.g. onnxruntime.")
    options: dict[str, Any] = Field(default_factory=dict, description="The peer's options.")
    label: Name | None = Field(None, description="What its cases are called, in a variant's place; else its name.")

    @property
    def case_label(self) -> str:
        """What its cases are called, in the place of a variant."""
        return self.label or self.name


def _or_bare_name(schema: dict[str, Any]) -> None:
    schema["items"] = {"anyOf": [{"type": "string", "minLength": 1}, schema["items"]]}


class VariantTable(_Table):
    """A way to compile and run: flag sets in order, then flags, then plugins."""

    description: str = ""
    flagsets: Many[Name] = Field((), description="Names of flag sets from flagset_files.")
    flags: Many[Flag] = Field((), description="More iree-compile flags.")
    run_flags: Many[Flag] = Field((), description="More runtime flags.")
    plugins: Many[PluginTable] = Field(
        (),
        description="Registered preprocessing plugins, in order: names, or { name = ..., options = { ... } }.",
        json_schema_extra=_or_bare_name,
    )
    toolchains: str = Field("", description=_RELEASES)
    tags: Many[Name] = ()


def _or_one(schema: dict[str, Any]) -> None:
    text = {**schema.pop("items"), "minLength": 1}
    schema["anyOf"] = [text, {"type": schema.pop("type"), "items": text, "minItems": schema.pop("minItems")}]


class DeviceTable(_Table):
    """Where modules run."""

    description: str = ""
    uris: Many[str] = Field(
        alias="uri",
        min_length=1,
        description="What --device= takes: local-sync, local-task, vulkan, cuda://0, ...; or a list of them, in order, "
        "for programs that run on several devices.",
        json_schema_extra=_or_one,
    )
    vulkan_driver: Literal["lavapipe", "swiftshader"] | None = Field(
        None, description="Use this Vulkan driver alone, wherever this system has it."
    )
    threads: int | None = Field(
        None,
        ge=1,
        description="Threads of each local-task device and of peers; by default IREE's choice, and for peers one on "
        "local-sync and pinned devices, else one for each core.",
    )
    backend: str = Field(
        min_length=1, description="The backend that compile_flags choose: llvm-cpu, vmvx, vulkan-spirv, cuda, rocm."
    )
    compile_flags: Many[Flag] = ()
    run_flags: Many[Flag] = ()
    pin: bool = Field(False, description="Hold the measuring process on one core, where the system can.")
    on: Pattern = Field(
        "*", description="With --fleet, the hosts that it may be measured on: a shell pattern on names or classes."
    )
    hosts: Literal["one", "each"] = Field(
        "one", description="With --fleet, whether one host of these measures it, or each of them, side by side."
    )
    tags: Many[Name] = ()

    @field_validator("uris", mode="before")
    @classmethod
    def _one_uri(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @field_serializer("uris")
    def _written_uri(self, value: tuple[str, ...]) -> str | tuple[str, ...]:
        """As people write it, in suites that the harness makes."""
        return value[0] if len(value) == 1 else value


class ModelFileTable(_Table):
    """Which models of another suite a suite has too."""

    models: list[Pattern] = Field(min_length=1, description="Shell patterns on their names.")
    prefix: Name | Literal[""] = Field("", description="Begins what they are called here: 'mlp-'.")


class MatrixTable(_Table):
    """Which of models x variants x devices become cases."""

    include: list[Pattern] = Field(default_factory=lambda: ["*"], min_length=1)
    exclude: list[Pattern] = Field(default_factory=list)


class ExpectTable(_Table):
    """Cases that are known to fail; the report says so, and says when they work. Exactly one of fails and mismatch."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["fails"]}, {"required": ["mismatch"]}]})

    cases: Pattern
    fails: str | None = Field(None, min_length=1, description="A part of the message with which they fail.")
    mismatch: bool = Field(False, description="They run, and their outputs are not the right ones.")


class GroupTable(_Table):
    """Variants that reports show side by side; the first is the one the others are compared with."""

    title: str = Field(min_length=1, max_length=100)
    variants: list[Name] = Field(min_length=2)


class GateTable(_Table):
    """How much a metric may change before `harness compare` fails; no limit: not at all."""

    metric: str = Field(
        description="What is limited: a metric, or an op count of [ir] as 'flow/tensor.empty'.",
        json_schema_extra=_METRIC,
    )
    cases: Pattern = "*"
    direction: Direction = Field(
        "increase", description="The direction of change that may fail; all metrics are better when smaller."
    )
    relative: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Allowed change as a share of the base: 0.05 is 5 %."
    )
    absolute: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        description="Allowed change in the metric's unit: nanoseconds, bytes, instructions or a plain number. With "
        "relative too, a change is allowed that is within either.",
    )
    at_most: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        description="Instead of a change: what the metric may be at most, in its unit. `harness run` judges it too.",
    )


class MeasureTable(_Table):
    """How long and how often to measure; the command line can say otherwise."""

    budget_s: float = Field(120.0, gt=0, allow_inf_nan=False, description="Seconds of timed rounds for the whole run.")
    generations: int = Field(5, ge=1, description="Fresh sets of worker processes: the independent samples.")


class SuiteFile(_Table):
    """models x variants x devices, and which of their combinations to run."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["models"]}, {"required": ["model_files"]}]})

    name: Name
    description: str = ""
    baseline: Name = Field(description="The variant that the others are compared with.")
    flagset_files: list[str] = Field(default_factory=list, description="Flag-set files, relative to the suite.")
    variant_files: list[str] = Field(
        default_factory=list,
        description="Files of more variants, relative to the suite, as `harness tune` writes them.",
    )
    models: dict[Name, ModelTable] = Field(default_factory=dict, json_schema_extra=_NAMED)
    model_files: dict[str, ModelFileTable] = Field(
        default_factory=dict, description="Models of other suites, by the suite's file, relative to this one."
    )
    variants: dict[Name, VariantTable] = Field(min_length=1, json_schema_extra=_NAMED)
    devices: dict[Name, DeviceTable] = Field(min_length=1, json_schema_extra=_NAMED)
    peers: list[PeerTable] = Field(
        default_factory=list,
        description="Other engines to measure in the same rounds on llvm-cpu devices: names, or "
        "{ name = ..., options = { ... }, label = ... }.",
        json_schema_extra=_or_bare_name,
    )
    matrix: MatrixTable = MatrixTable()
    expect: list[ExpectTable] = Field(default_factory=list)
    groups: list[GroupTable] = Field(default_factory=list)
    floors: dict[str, Floor] = Field(
        default_factory=dict,
        description="By metric, the relative change below which nothing is called changed: 0.01 is 1 %.",
        json_schema_extra=_FLOORED,
    )
    gates: dict[Name, GateTable] = Field(default_factory=dict, json_schema_extra=_NAMED)
    ir: dict[str, Annotated[list[Op], Field(min_length=1)]] = Field(
        default_factory=dict,
        description="By phase of the compiler, the ops to be counted there: 'tensor.empty', 'linalg.*', "
        "'executables:memref.alloc'.",
        json_schema_extra=_PHASES,
    )
    storage: bool = Field(
        False, description="Tell what encoded tensors cost: their bytes, what of it is padding, and the worst case."
    )
    benchmark_module: bool = Field(
        True, description="Ask iree-benchmark-module for each case's time and peak memory too, once."
    )
    measure: MeasureTable = MeasureTable()


class FlagSetTable(_Table):
    """A named list of flags."""

    description: str = ""
    compile: Many[Flag] = Field((), description="Flags for iree-compile.")
    run: Many[Flag] = Field((), description="Flags for the runtime.")
    backends: Many[str] = Field((), description="Compiler backends it is for; empty: all.")
    toolchains: str = Field("", description=_RELEASES)


class FlagSetFile(_Table):
    """Flag sets that suites name in their variants."""

    flagsets: dict[Name, FlagSetTable] = Field(min_length=1, json_schema_extra=_NAMED)


class VariantFile(_Table):
    """Variants that suites take in; flag sets that they name are the suite's."""

    variants: dict[Name, VariantTable] = Field(min_length=1, json_schema_extra=_NAMED)


class ListFile(_Table):
    """Suites that are run one after the other."""

    name: Name
    description: str = ""
    suites: list[Annotated[str, Field(min_length=1)]] = Field(
        min_length=1, description="Suite files, relative to the list; a list cannot hold lists."
    )
    measure: MeasureTable = Field(
        MeasureTable(), description="For each of the suites; what is left out, the suite says itself."
    )


Kind = Literal["suite", "list", "flagset", "variants"]
_FORMS: dict[Kind, type[BaseModel]] = {
    "suite": SuiteFile,
    "list": ListFile,
    "flagset": FlagSetFile,
    "variants": VariantFile,
}


def json_schema(kind: Kind) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of suites, lists of suites, flag-set files or files of variants, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_FORMS[kind].model_json_schema()}
