"""Flags, plugins and lowering configurations that make a model fast: candidates, races between them, tuning specs."""
