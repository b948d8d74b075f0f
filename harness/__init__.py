"""Measure what ML compilers do: models x compiler-flag variants x devices, driven through IREE's own tools."""

__version__ = "0.1.0"
