"""How far a case is from what the machine could do: work counted from the IR, and the machine's measured peaks.

The modules `counter`, `graph`, `operations`, `arithmetic`, `footprint` and `sizes` run under a toolchain's own Python,
where only the standard library and iree.compiler are to be had; so this package imports nothing by itself.
"""
