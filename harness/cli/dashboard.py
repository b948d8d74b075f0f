"""`harness dashboard`."""
