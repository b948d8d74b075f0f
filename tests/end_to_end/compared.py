"""A suite that was run twice, for comparisons: what it is made of, and how its tests read what is printed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.end_to_end.conftest import CPU, Harness

# A matmul, so that code for every x86-64 or Arm processor is several times slower than code for the one that is here.
SUITE = (
    """
name = "small"
baseline = "stock"

[models.product]
mlir = "product.mlir"
function = "main"
inputs = [{ shape = [192, 192], seed = 0 }, { shape = [192, 192], seed = 1 }]

[variants.stock]

[variants.slow]
flags = ["--iree-llvmcpu-target-cpu=generic", "--iree-opt-level=O0"]

[variants.inert]
description = "func.func where util.func is meant, so that nothing matches"
flags = [
    "--iree-preprocessing-pass-pipeline=builtin.module(func.func(iree-preprocessing-convert-conv-to-channels-last))",
]

"""
    + CPU
    + """
[gates.copies]
metric = "copies"
"""
)
PRODUCT = """
func.func @main(%a: tensor<192x192xf32>, %b: tensor<192x192xf32>) -> tensor<192x192xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<192x192xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<192x192xf32>) -> tensor<192x192xf32>
  %c = linalg.matmul ins(%a, %b : tensor<192x192xf32>, tensor<192x192xf32>) outs(%init : tensor<192x192xf32>)
    -> tensor<192x192xf32>
  return %c : tensor<192x192xf32>
}
"""
STOCK, SLOW, INERT = "product/stock@cpu", "product/slow@cpu", "product/inert@cpu"
BASE, HEAD = "results/base", "results/head"
ONE_GENERATION = ("--row-budget", "0.01", "--compile-budget", "0")
DOCUMENT = {"schema_version", "base", "head", "machine", "rows", "summary"}
ROW = {
    *("case", "model", "variant", "device", "metric", "verdict", "ratio", "ci_low", "ci_high", "p", "floor"),
    *("base_value", "head_value", "unit", "generations", "rounds", "seconds", "reason"),
}


def with_cache(harness: Harness, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command under another cache."""
    environment = {**os.environ, "HARNESS_CACHE": str(cache)}
    return subprocess.run(
        harness.command(*arguments), cwd=harness.folder, capture_output=True, text=True, timeout=240, env=environment
    )


def comparisons(harness: Harness) -> list[Path]:
    return [path for path in harness.runs() if path.name.endswith("-compare")]


def document(finished: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What --format json printed: one document, in JSON's strict sense, that keeps the contract."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    assert "Traceback" not in finished.stderr
    found: dict[str, Any] = json.loads(finished.stdout, parse_constant=refuse)
    assert found.keys() >= DOCUMENT
    assert all(row.keys() >= ROW for row in found["rows"])
    return found


def latencies(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By case; A/A controls have a name of their own."""
    rows = [row for row in found["rows"] if row["metric"] == "latency"]
    return {f"{row['case']} control" if row["control"] else row["case"]: row for row in rows}


def verdicts(found: dict[str, Any]) -> dict[str, str]:
    return {name: row["verdict"] for name, row in latencies(found).items()}


def edit(path: Path, change: Any) -> None:
    """Change a JSON file, or each line of one."""
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    records = [json.loads(line) for line in lines]
    for record in records:
        change(record)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def refused(harness: Harness, finished: subprocess.CompletedProcess[str], sentence: str) -> None:
    """One sentence on stderr, status 2, and no comparison begun."""
    assert finished.stderr.strip().splitlines()[-1].startswith(f"harness: {sentence}"), finished.stderr
    assert "Traceback" not in finished.stderr
    assert finished.stdout == ""
    assert finished.returncode == 2
    assert not comparisons(harness)
