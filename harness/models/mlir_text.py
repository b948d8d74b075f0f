"""Writing a program on ranked tensors as MLIR text, from a template of templates/; weights are dense_resource blobs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from harness.models.inputs import HELD_AS, bf16_bits

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
