"""What iree-compile prints of its passes, and which of them take another time on two sides."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.compare.engine import Generation
from harness.compare.samplers import MeasurementPolicy
from harness.errors import CaseError
from harness.explain import passes
from harness.explain.attribute import Sampled
from harness.explain.passes import attribute_passes, passes_of
from harness.records.explanation import Method
from harness.stats.rule import Rule
from harness.toolchain import Toolchain
from tests.explain.conftest import a_module

REPORTS = Path(__file__).parent / "profiles"
SERIALIZE = "SerializeTargetExecutables"


@pytest.mark.parametrize(
    ("release", "ms"),
    [
        # Two reports: the compile's and that of the bytecode.
        ("3.0.0", {SERIALIZE: 463.9, "Canonicalizer": 34.7 + 2.2 + 0.6, "ResolveRodataLoads": 8.3}),
        ("3.13.0", {SERIALIZE: 163.2, "FoldGlobals": 22.8}),
    ],
)
def test_passes_are_read_without_pipelines_and_the_passes_that_run_them(release: str, ms: Mapping[str, float]) -> None:
    found = passes_of("base", (REPORTS / f"iree-{release}-timing.txt").read_text())
    assert found == pytest.approx({name: value * 1e6 for name, value in ms.items()})


def said(seconds: Mapping[str, float]) -> str:
    row = '{"wall": {"duration":   %.4f, "percentage":   0.0}, "name": "%sPass"},\n'
    return "".join(row % (value, name) for name, value in seconds.items())


def test_a_pass_that_takes_longer_is_found_and_kept_generations_are_not_compiled_again(
    monkeypatch: pytest.MonkeyPatch, toolchain: Toolchain, tmp_path: Path
) -> None:
    base = {"Tile": 0.5, "Fold": 0.3, "Gone": 0.01, "Idle": 0.0}
    prints = [said(base), said({"Tile": 1.0, "Fold": 0.3, "Idle": 0.0})]
    kept = dict[int, Sampled]()

    def compile_both(*given: Any) -> tuple[Generation, str, str]:
        assert "--mlir-timing" in given[5]
        log = math.log(1.5) + 0.001 * (given[4] * 7 % 5)
        whole = Generation(log_ratio=log, base=0.9e9, head=0.9e9 * math.exp(log), rounds=1, seconds=2.3)
        return whole, prints[0], prints[1]

    def keep(method: Method, number: int, measure: Callable[[], Sampled]) -> Sampled:
        assert method == "passes"
        return kept[number] if number in kept else kept.setdefault(number, measure())

    monkeypatch.setattr(passes, "compile_both", compile_both)
    modules = (a_module(toolchain, tmp_path / "base"), a_module(toolchain, tmp_path / "head"))
    policy = MeasurementPolicy(rule=Rule(floor=0.05), budget_s=60, seed=0, call_limit_s=1)
    found = attribute_passes(modules, policy, once=keep, on_beyond=print)
    assert {part.operation: part.verdict for part in found.parts} == {
        "Tile": "regressed",
        "Gone": "missing",
        "Fold": "unchanged",
    }
    assert (found.method, found.latency.decision, len(kept)) == ("passes", "regressed", len(found.generations))
    prints[:] = [said(base), "no report"]
    assert attribute_passes(modules, policy, once=keep, on_beyond=print) == found
    kept.clear()
    with pytest.raises(CaseError, match="the head's iree-compile prints no times of its passes"):
        attribute_passes(modules, policy, once=keep, on_beyond=print)
