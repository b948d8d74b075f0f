"""Builders: models that are written by a function of a few parameters, known by their registered names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from numpy.typing import NDArray
from pydantic import Field

from harness.models.inputs import HELD_AS, bf16_bits
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


_TEMPLATES = Path(__file__).with_name("templates")
# Constants of up to this size IREE moves into the dispatches that read them, and there IREE 3.13 fails on a
# dense_resource of bf16 (it gives the operation another type, and not the value).
_INLINE_BYTES = 256


def tensor_type(shape: Sequence[int | str], dtype: str = "f32") -> str:
    """A ranked tensor type: `tensor<4x8xbf16>`, or `tensor<?x8xbf16>` where a size is "?"."""
    return f"tensor<{'x'.join(map(str, [*shape, dtype]))}>"


def render(template: str, **values: Any) -> str:
    """The text of a template, in which `constant(name, values, dtype)` is a constant of these values, rounded."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    resources = []

    def constant(name: str, values: NDArray[Any], dtype: str = "f32") -> str:
        elements = bf16_bits(values) if dtype == "bf16" else values.astype(HELD_AS[dtype])
        type_ = tensor_type(elements.shape, dtype)
        if dtype != "f32" and elements.nbytes <= _INLINE_BYTES:
            return f'arith.constant dense<"0x{elements.tobytes().hex()}"> : {type_}'
        # The blob's first four bytes are its alignment.
        blob = elements.itemsize.to_bytes(4, "little") + elements.tobytes()
        resources.append(f'      {name}: "0x{blob.hex()}"')
        return f"arith.constant dense_resource<{name}> : {type_}"

    environment = Environment(  # noqa: S701 (MLIR is no HTML)
        loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(tensor=tensor_type, constant=constant, next=next)
    text = environment.get_template(template).render(values)
    if not resources:
        return text
    blobs = ",\n".join(resources)
    return f"{text}\n{{-#\n  dialect_resources: {{\n    builtin: {{\n{blobs}\n    }}\n  }}\n#-}}\n"
