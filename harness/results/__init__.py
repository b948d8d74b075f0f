"""Run directories: what a run leaves behind."""
