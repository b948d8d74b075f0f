"""A dispatch whose result goes into several tensors writes each of them itself, instead of being copied there.

    %v = flow.dispatch @conv(...)                      %v:2 = flow.dispatch @conv(...)
    %a1 = flow.tensor.update %v, %a[...]        ->     %a1 = flow.tensor.update %v#0, %a[...]
    %b1 = flow.tensor.update %v, %b[...]               %b1 = flow.tensor.update %v#1, %b[...]

A result that one update alone uses is placed into the update's target by IREE itself, and the update is gone. So there
are as many results as updates, and inside the dispatch as many stores. Each captures only the part of the target that
it writes, so that other dispatches may write other parts at the same time.

Proposed as a "shady idea" in https://github.com/iree-org/iree/issues/11102.
"""

from __future__ import annotations

from iree.compiler import ir

from harness.rewrites.replicate_stores_code import add_stores, find_code
from harness.rewrites.replicate_stores_flow import (
    dispatches_in,
    find_uses,
    has_own_result,
    is_update,
    own_executable,
    replace_uses,
    with_results,
)


def replicate_stores(module: ir.Module) -> int:
    """Let dispatches write each tensor that their result is inserted into. All results stay the same to the bit.

    Only dispatches with one result, of a static shape, that end in elementwise arithmetic. A tensor that cannot exist
    before the dispatch, because it is made of the result, keeps its copy.

    Args:
        module: Changed in place; as at IREE's phase `flow`.

    Returns:
        How many dispatches write more than before.
    """
    return sum(_replicate(module, dispatch) for dispatch in dispatches_in(module))


def _replicate(module: ir.Module, dispatch: ir.Operation) -> bool:
    """Give each update by a dispatch's result a result of its own; whether there was any to give."""
    if not has_own_result(dispatch) or find_code(module, dispatch) is None:
        return False
    uses = find_uses(dispatch.result)
    updates = [use for use in uses if is_update(use, dispatch)]
    is_needed_otherwise = len(updates) < len(uses)
    results = len(updates) + is_needed_otherwise
    if not updates or results == 1:
        return False
    own_executable(module, dispatch)
    code = find_code(module, dispatch)
    if code is not None:  # always: a copy of what it was
        add_stores(code, results)
    values = with_results(dispatch, results)
    replace_uses(dispatch, updates, values)
    return True
