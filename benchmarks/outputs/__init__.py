"""How often outputs are judged wrongly: right programs that are refused, and planted faults that are not found."""
