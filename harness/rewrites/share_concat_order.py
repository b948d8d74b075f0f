"""Where the operations of a block stand."""

from __future__ import annotations

from iree.compiler import ir


class Order:
    """The order of a block's operations at one moment; operations that are made later are not in it.

    Attributes:
        operations: All of them, the terminator last.
    """

    def __init__(self, block: ir.Block) -> None:
        self.operations = [view.operation for view in block.operations]
        self._positions = {operation: position for position, operation in enumerate(self.operations)}

    def of_user(self, user: ir.Operation) -> int:
        """The position of an operation, or of the one that holds it; of the terminator for one in a later block."""
        position = self._find(user)
        return len(self.operations) - 1 if position is None else position

    def holds(self, user: ir.Operation) -> bool:
        """Whether an operation is in the block, or in a region of one that is."""
        return self._find(user) is not None

    def of_definition(self, value: ir.Value) -> int | None:
        """The position of the operation that computes a value; None for one from before the block."""
        return None if isinstance(value.owner, ir.Block) else self._positions.get(value.owner.operation)

    def _find(self, user: ir.Operation) -> int | None:
        holder = user
        while holder is not None:
            position = self._positions.get(holder.operation)
            if position is not None:
                return position
            holder = holder.operation.parent
        return None
