"""The JSON files of upstream's tests, see https://github.com/iree-org/iree-test-suites, as pydantic models."""

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from harness.errors import UsageError
from harness.text import one_line


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


_Strings = tuple[str, ...]


class OperatorConfig(_Form):
    """onnx_ops/configs/*.json and torch_ops/configs/*.json: flags, and what is known of single tests, by name."""

    iree_compile_flags: _Strings
    iree_run_module_flags: _Strings
    skip_compile_tests: _Strings = ()
    skip_run_tests: _Strings = ()
    expected_compile_failures: _Strings = ()
    expected_run_failures: _Strings = ()
    golden_times_ms: dict[str, float] = {}
    tolerance_factor: float = 1.1


class Formula(_Form):
    """coeff * uniform random numbers + offset, as elements of a numpy type."""

    shape: tuple[Annotated[int, Field(ge=0)], ...]
    dtype: Literal["float16", "float32", "float64", "int8", "int16", "int32", "int64"] = "float32"
    coeff: float = 1
    offset: float = 0


class FormulaArgument(_Form):
    """An argument of a test of torch_ops."""

    Formula: Formula


class Value(_Form):
    """An argument or a right output: its text for iree-run-module, the URL of its file, or both."""

    url: str | None = Field(None, validation_alias=AliasChoices("url", "source"))  # sharktank_models says source
    value: str | None = None


class TorchOperator(_Form):
    """torch_ops/generated/*/*/run_module_io.json."""

    function_name: str
    file_name: str
    flat_args: tuple[FormulaArgument, ...]
    seed: int = Field(ge=0, lt=2**32)
    rtol: float = Field(ge=0, allow_inf_nan=False)
    atol: float = Field(ge=0, allow_inf_nan=False)
    mode: Literal["compare", "benchmark"]
    expected_output: tuple[Value, ...] = ()


class ModuleFile(_Form):
    """A module of torch_models: where its program is, and how it is compiled."""

    mlir: str
    compiler_flags: _Strings = ()


class Weights(_Form):
    """A parameter file of torch_models."""

    scope: str
    url: str | None = None  # Random ones have none


class ModelTest(_Form):
    """A test of torch_models."""

    type: Literal["quality", "benchmark", "compstat"]
    modules: _Strings = ()
    module: str | None = None  # Of a compstat
    weights: tuple[Weights, ...] = ()
    inputs: tuple[Value, ...] = ()
    expected_outputs: tuple[Value, ...] = ()
    run_args: _Strings = ()
    golden_time_ms: float | None = None
    tolerance_factor: float = 1.1
    golden_dispatch_count: int | None = None
    golden_binary_size: int | None = None


class SharktankQuality(_Form):
    """sharktank_models/quality_tests/*/*.json."""

    mlir: str
    run_function: str | None = None
    compiler_flags: _Strings = ()
    inputs: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    real_weights: str | None = None
    device: str | None = None
    threshold_args: _Strings = ()
    pipeline_mlir: str | None = None


class SharktankBenchmark(_Form):
    """sharktank_models/benchmarks/*/*.json: goldens by kind of machine, for the program of a quality test."""

    function_run: str
    golden_time_ms: dict[str, float] = {}
    golden_time_tolerance_multiplier: dict[str, float] = {}
    golden_dispatch: dict[str, int] = {}
    golden_size: dict[str, int] = {}


_AnyForm = TypeVar("_AnyForm", bound=_Form)


def read(file: Path, form: type[_AnyForm]) -> _AnyForm:
    """A file of a form, or UsageError."""
    found = read_if(file, form)
    if isinstance(found, str):
        raise UsageError(f"{file}: is not what upstream's tests have there ({found}); correct it, or leave it out")
    return found


def is_meant(file: Path, why: str) -> bool:
    """Whether a file that is no test of a model was to be one, or what it was to be cannot be told."""
    return why.startswith("Invalid JSON") or b'"type"' in file.read_bytes()


def read_if(file: Path, form: type[_AnyForm]) -> _AnyForm | str:
    """A file of a form, or what is wrong with it."""
    try:
        return form.model_validate_json(file.read_bytes())
    except OSError as error:
        return str(error.strerror)
    except ValidationError as error:
        first = error.errors()[0]
        return one_line(f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": "))[:200]
