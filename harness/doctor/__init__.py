"""Telling how good a machine is for measuring."""
