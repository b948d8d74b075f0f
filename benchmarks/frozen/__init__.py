"""What every command prints on stored runs, before and after a change of the code.

    python -m benchmarks.frozen record OUT [--harness PATH/TO/harness] [--only PATTERN]
    python -m benchmarks.frozen diff BEFORE AFTER

`record` runs each call of calls.py as a subprocess, in a fresh copy of the inputs: benchmarks/frozen/inputs,
results/published, suites and flagsets of the repository that holds this file. It keeps one text file a call: exit
status, stdout, stderr, and the files that the call wrote. `diff` prints a unified diff of the calls that differ and
exits with 1; it prints nothing and exits with 0 when nothing changed.

Nothing of the harness is imported, so that one version of this package records old code and new code alike. Two
recordings of the same code are equal; printed.py lists the rules that make them so.
"""
