"""What is in a program: its ops, layouts, operations and bytes at the compiler's phases, and the roof above it.

The modules `child`, `readers`, `layouts`, `sizes`, `operations` and `program` run under a toolchain's own
Python, where only the standard library and iree.compiler are to be had; so this package imports nothing by itself.
"""
