"""Builders: models that are written by a function of a few parameters, known by their registered names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field

from harness.models.model import Input
from harness.plugins.options import check_options
from harness.plugins.registry import Registry

P = TypeVar("P")

# Fields of parameters that most builders have.
Size = Annotated[int, Field(ge=1)]
# What is written one by one, such as layers: more of them take a day to write, and no compiler takes them.
Count = Annotated[int, Field(ge=1, le=10_000)]
Seed = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, kw_only=True)
class BuiltModel:
    """What a builder gives: a program and how to call it."""

    text: str | bytes  # The MLIR module, as text or as bytecode
    function: str  # Name of the entry function
    inputs: tuple[Input, ...]  # Its arguments, in order


@dataclass(frozen=True, kw_only=True)
class BuiltOnnx:
    """What a builder gives that writes its model in ONNX: iree-import-onnx makes the program of it."""

    onnx: bytes  # The model, serialised, its weights inside
    inputs: tuple[Input, ...]  # The graph's inputs, in order, of static shapes


@dataclass(frozen=True, kw_only=True)
class Builder(Generic[P]):
    """A registered way to write a model."""

    name: str
    description: str
    parameters: type[P]  # A frozen keyword-only dataclass with a default for every field; see harness.plugins.options
    build: Callable[[P], BuiltModel | BuiltOnnx]  # Writes the model; equal parameters must give equal bytes
    # Writes the same function in ONNX, serialised, where `build` gives MLIR and peers shall have it too; None for
    # parameters that have no such form
    onnx: Callable[[P], bytes | None] | None = None
    # Change it when the model changes for a reason outside the builder's own package; what it writes is kept by name,
    # version, parameters and the source of the modules that define it and of those beside them
    version: str = "1"


BUILDERS: Registry[Builder[Any]] = Registry(
    group="harness.builders", noun="builder", kind=Builder, kind_name="harness.models.Builder"
)


def find_builder(name: str, where: str = "suite") -> Builder[Any]:
    """The builder of that registered name; only its package is imported."""
    return BUILDERS.find(name, where)


def check_params(builder: Builder[P], params: Mapping[str, Any], where: str = "params") -> P:
    """Turn a suite's `params` table into the builder's parameters."""
    return check_options(builder.parameters, params, where=where, owner=f"builder {builder.name!r}", noun="parameter")
