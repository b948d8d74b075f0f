"""`harness history`."""
