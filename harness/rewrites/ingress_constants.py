"""Ingress: the values of constant tensors, permuted without being read as numbers, so of any element type."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from iree.compiler import ir
from iree.compiler.dialects import arith
from numpy.typing import NDArray

_RESOURCE = re.compile(r'dense_resource<(?:"(?P<quoted>[^"]*)"|(?P<bare>[^>]*))>')
# A resource's blob as printed: its alignment as four bytes, then its values.
_BLOB = re.compile(r': "0x[0-9A-Fa-f]{8}(?P<values>[0-9A-Fa-f]+)"')
_DENSE = re.compile(r"dense<(?P<values>.*)> : ", re.DOTALL)


def transposed(value: ir.Attribute, permutation: Sequence[int], result: ir.RankedTensorType) -> ir.Attribute | None:
    """A constant tensor with its dimensions permuted.

    Args:
        value: Of an arith.constant of numbers.
        permutation: Dimension i of the result is dimension permutation[i] of the value.
        result: The type of the result.

    Returns:
        An attribute of the same kind; None where the values cannot be got at.
    """
    if 0 in value.type.shape:
        return None
    if isinstance(value, ir.DenseElementsAttr):
        if value.is_splat:
            return ir.DenseElementsAttr.get_splat(result, value.get_splat_value())
        return _transposed_dense(value, permutation, result)
    resource = _RESOURCE.match(str(value))
    if resource is None:
        return None
    blob = _BLOB.search(_text_with_blob(value))
    elements = None if blob is None else _elements(bytes.fromhex(blob["values"]), value.type)
    if elements is None:
        return None
    name = f"{resource['quoted'] or resource['bare']}_transposed"
    return ir.DenseResourceElementsAttr.get_from_buffer(
        _permuted(elements, permutation), name, result, alignment=elements.itemsize
    )


def _transposed_dense(
    value: ir.DenseElementsAttr, permutation: Sequence[int], result: ir.RankedTensorType
) -> ir.Attribute | None:
    match = _DENSE.match(str(value))
    if match is None:
        return None
    text = match["values"]
    if text.startswith('"0x'):  # how many elements are printed
        elements = _elements(bytes.fromhex(text[3:-1]), value.type)
        if elements is None:
            return None
        new = f'"0x{_permuted(elements, permutation).tobytes().hex()}"'
    else:
        numbers = np.array(re.findall(r"[^\[\],\s]+", text), dtype=object).reshape(value.type.shape)
        new = json.dumps(numbers.transpose(permutation).tolist()).replace('"', "")
    return ir.Attribute.parse(f"dense<{new}> : {result}")


def _text_with_blob(value: ir.Attribute) -> str:
    """A module of this constant alone, as text: the one way to a resource's values that the bindings have."""
    with ir.Location.unknown(value.context):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            arith.ConstantOp(value.type, value)
    return str(module.operation.get_asm())


def _elements(values: bytes, type_: ir.RankedTensorType) -> NDArray[Any] | None:
    """The elements as opaque bytes in the tensor's shape; None where they are packed in another way."""
    size = -(-int(type_.element_type.width) // 8)
    if len(values) != size * math.prod(type_.shape):
        return None
    elements: NDArray[Any] = np.frombuffer(values, dtype=f"V{size}").reshape(type_.shape)
    return elements


def _permuted(elements: NDArray[Any], permutation: Sequence[int]) -> NDArray[np.uint8]:
    """The elements' bytes in the new order."""
    return np.frombuffer(elements.transpose(permutation).tobytes(), dtype=np.uint8)
