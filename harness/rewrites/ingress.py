"""Ingress canonicalisation: from the linalg that PyTorch gives to the linalg that hand-written generators give.

https://github.com/plaidml/tpp-mlir lists five differences between an MLP from PyTorch and the same MLP from its own
generator, and asks which effect each one has on its own. Each is an option here.
"""

from __future__ import annotations

from iree.compiler import ir

from harness.rewrites import ingress_buffers, ingress_matmul, ingress_relu, ingress_transpose


def ingress_canonicalize(
    module: ir.Module,
    *,
    fill_init: bool = True,
    outs_style: bool = True,
    fold_transpose: bool = True,
    generic_matmul: bool = True,
    relu_to_maximum: bool = True,
) -> int:
    """Rewrite linalg on tensors in place.

    The options are independent of each other; those that are on are applied in this order. None changes which numbers
    are multiplied and added, nor in which order, so the results are the same to the bit where a compiler keeps to
    that. With fold_transpose they lie elsewhere in memory; a compiler that then vectorises otherwise may round
    otherwise.

    Args:
        module: At phase `input`; its context is active.
        fill_init: Elementwise operations write into a linalg.fill of zeros rather than a tensor.empty.
        outs_style: Elementwise operations update the result before them: it becomes the init, which the body reads,
            rather than an input beside an init that nothing reads. Only where nothing else reads that result.
        fold_transpose: A transposed constant that a matrix product reads is stored transposed; any other transposition
            that matrix products alone read becomes part of their indexing maps.
        generic_matmul: linalg.matmul and linalg.batch_matmul become linalg.generic with the same body.
        relu_to_maximum: ReLU and leaky ReLU by comparing and selecting become arith.maximumf, where that gives equal
            numbers; the sign of a zero may change in one leaky form. See harness.rewrites.ingress_relu.

    Returns:
        The number of matched places of all options together; 0 where nothing was changed.
    """
    steps = [
        (fill_init, ingress_buffers.fill_init),
        (outs_style, ingress_buffers.outs_style),
        (fold_transpose, ingress_transpose.fold_transpose),
        (generic_matmul, ingress_matmul.generic_matmul),
        (relu_to_maximum, ingress_relu.relu_to_maximum),
    ]
    return sum(step(module) for is_on, step in steps if is_on)
