"""`harness github`."""
