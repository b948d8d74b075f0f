"""What the built-in plugins gain beside other engines, on one core.

    make plugins      (or: .venv/bin/python -m benchmarks.plugins esrgan; the same with convolution)

compiles and checks a suite through the harness, measures its modules beside ONNX Runtime (esrgan) or Halide
(convolution) and numpy's sgemm in fresh processes, one turn after the other, and writes the benchmark's table of
docs/seeds.md. The machine should have nothing else to do meanwhile; it takes some minutes.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.plugins import engines
from benchmarks.plugins.compiled import compile_suite
from benchmarks.plugins.recorded import read
from benchmarks.plugins.recording import ROOT, record
from benchmarks.plugins.tables import write_tables

SUITES: dict[engines.Benchmark, Path] = {
    "esrgan": Path(__file__).with_name("esrgan.toml"),
    "convolution": ROOT / "suites" / "conv-schedule.toml",
}


def main() -> None:
    """Record what was asked for, and write its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark", choices=SUITES)
    parser.add_argument("--generations", type=int, default=8, help="fresh processes of each group (8)")
    parser.add_argument("--rounds", type=int, default=8, help="turns of each program in a generation (8)")
    parser.add_argument("--recording", type=Path, help="a file of JSON lines; default: in results/")
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "seeds.md", help="where the table goes")
    parser.add_argument("--replay", action="store_true", help="record nothing, only write the table")
    arguments = parser.parse_args()
    recording: Path = arguments.recording or ROOT / "results" / f"plugins-{arguments.benchmark}.jsonl"
    if not arguments.replay:
        for sentence in engines.missing(arguments.benchmark):
            sys.stderr.write(f"{sentence}\n")
        compiled = compile_suite(SUITES[arguments.benchmark], recording.parent)
        record(
            arguments.benchmark,
            compiled,
            recording,
            generations=arguments.generations,
            rounds=arguments.rounds,
        )
    write_tables(arguments.document, read(recording))


if __name__ == "__main__":
    main()
