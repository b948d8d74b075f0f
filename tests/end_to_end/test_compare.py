"""`harness compare` and `explain`, from the command line to their exit status, with the real compiler and runtime."""

import json
import math
import signal
from importlib.metadata import version

import pytest

from harness.store.run_directory import load_rounds
from tests.end_to_end.command import Harness, document, latencies, verdicts

STOCK, SLOW, INERT = "product/stock@cpu", "product/slow@cpu", "product/inert@cpu"
BASE, HEAD = "results/base", "results/head"
ONE_GENERATION = ("--row-budget", "0.01", "--row-cap", "0.01", "--compile-budget", "0")

# --- Within a run ---


def test_an_interrupted_comparison_prints_what_is_decided_and_goes_on(runs: Harness) -> None:
    command = ("compare", "--within", BASE, "--row-budget", "3", "--compile-budget", "0")
    ended, path = runs.killed(signal.SIGINT, "record.jsonl", *command)
    assert ended.returncode == 130
    assert "Interrupted: 1 row is not decided yet" in ended.words
    assert "product/inert@cpu" in ended.stdout
    again = f"harness compare --resume {path.relative_to(runs.folder)}"
    assert ended.stderr.splitlines()[-1] == f"harness: interrupted; go on with `{again}`"
    assert not (path / "comparison.json").exists()
    first = len((path / "record.jsonl").read_text().splitlines())
    stretch = [measured for measured in load_rounds(path) if measured.generation < first]

    found = document(runs("compare", "--resume", "latest", "--format", "json"))
    assert found["id"] == path.name
    assert found["command"] == ["harness", *command]
    assert latencies(found)[SLOW]["generations"] > first
    rounds = load_rounds(path)
    assert list(rounds[: len(stretch)]) == stretch  # and the rest of what was cut short counts for nothing
    assert {measured.generation for measured in rounds} == set(range(latencies(found)[SLOW]["generations"]))
    assert not (path / "unfinished.json").exists()
    refused = runs("compare", "--resume", str(path.relative_to(runs.folder)))
    assert "this comparison is finished" in refused.stderr


@pytest.mark.timing
def test_a_slow_variant_is_found_and_an_inert_one_is_identical(runs: Harness) -> None:
    command = ("compare", "--within", BASE, "--row-budget", "6", "--compile-budget", "0")
    ended = runs(*command, "--format", "json")
    assert ended.returncode == 1, ended.stderr
    found = document(ended)
    assert verdicts(found) == {SLOW: "regressed", INERT: "identical"}
    slow, inert = latencies(found)[SLOW], latencies(found)[INERT]
    assert 1.5 < slow["ci_low"] < slow["ratio"] < slow["ci_high"] and 0 < slow["p"] <= 0.05
    assert slow["unit"] == "ns" and 1.5 * slow["base_value"] < slow["head_value"]
    assert slow["rounds"] >= slow["generations"] >= 12  # six or more, and as many again or eight
    assert slow["reason"].startswith("confirmed in ")
    assert (inert["generations"], inert["ratio"], inert["reason"]) == (0, None, "same module bytes, same runtime")
    assert {row["metric"] for row in found["rows"]}.isdisjoint({"compile-time"})
    assert {row["gate"] for row in found["rows"]} == {None}  # gates are not about variants
    means = {mean["name"]: mean for mean in found["means"] if mean["kind"] in ("model", "variant")}
    assert means["product"]["ratio"] == pytest.approx(math.sqrt(slow["ratio"]))  # the inert one counts with 1

    again = runs("report", "latest", "--format", "json")
    assert (again.returncode, json.loads(again.stdout)) == (1, found)
    kept = load_rounds(runs.folder / "results" / found["id"])
    assert len(kept) == slow["rounds"]
    assert {turn.case for measured in kept for turn in measured.turns} == {"base", "head"}


@pytest.mark.timing
def test_a_slow_variant_is_explained_drawn_and_printed_again(runs: Harness) -> None:
    command = ("explain", "--within", BASE, "--variant", "slow", "--budget", "10")
    ended = runs(*command, "--format", "json")
    assert ended.returncode == 0, ended.stderr
    found = document(ended)
    assert (found["case"], found["method"], found["latency"]["verdict"]) == (SLOW, "profile", "regressed")
    for side in ("base", "head"):
        elsewhere = found[f"{side}_elsewhere"]
        spent = sum(part[f"{side}_ns"] for part in found["parts"])
        total = spent + sum(elsewhere["device_ns"].values()) + elsewhere["host_ns"]
        assert total == pytest.approx(found["latency"][f"{side}_value"])
    changed = [part for part in found["parts"] if part["verdict"] == "regressed"]
    assert changed and changed[0]["differs_at"] and changed[0]["what"]
    assert found["sentence"].startswith(SLOW)
    assert found["command"] == ["harness", *command, "--format", "json"]

    assert "Where the time goes" in runs("report", "latest").words
    out = runs.folder / "waterfall.svg"
    assert runs("plot", "latest", "--kind", "waterfall", "--out", str(out)).returncode == 0
    assert out.stat().st_size > 1_000


def test_compiles_of_two_variants_are_explained_by_pass(runs: Harness) -> None:
    command = ("explain", "--within", BASE, "--variant", "slow", "--metric", "compile-time")
    ended = runs(*command, "--budget", "0.1")
    assert ended.returncode == 0, ended.stderr
    assert "The compile of product/slow@cpu " in ended.words and "What differs there" not in ended.words
    assert all(line in ended.words for line in ("SerializeTargetExecutables ", "in no pass: start,", "one compile "))
    found = document(runs("report", "latest", "--format", "json"))
    assert (found["method"], found["latency"]["metric"]) == ("passes", "compile-time")
    assert found["base_elsewhere"]["host_ns"] > 0 < found["head_elsewhere"]["host_ns"]
    assert runs("plot", "latest", "--kind", "waterfall", "--out", "compile.svg").returncode == 0
    assert "SerializeTarget" in (runs.folder / "compile.svg").read_text()


# --- Two runs ---


def test_two_runs_of_one_suite_are_identical_and_nothing_is_measured(runs: Harness) -> None:
    ended = runs("compare", BASE, HEAD, "--format", "json")
    assert ended.returncode == 0, ended.stderr
    found = document(ended)
    assert verdicts(found) == dict.fromkeys((STOCK, SLOW, INERT), "identical")
    assert {row["seconds"] for row in found["rows"]} == {0}
    assert [row["metric"] for row in found["rows"]] == ["latency"] * 3  # equal modules have equal counts and sizes
    assert {row["gate"] for row in found["rows"]} == {"passed"}
    names = {file.name for file in (runs.folder / "results" / found["id"]).iterdir()}
    assert names >= {"comparison.json", "finished.json", "report.md"}
    assert "rounds.jsonl" not in names


def test_a_control_is_measured_although_it_is_identical(runs: Harness) -> None:
    found = document(runs("compare", BASE, HEAD, "--controls", "1", *ONE_GENERATION, "--format", "json"))
    control = latencies(found)[f"{STOCK} control"]
    assert (control["generations"], control["verdict"]) == (1, "inconclusive")
    assert control["repro"][0].endswith(f"--filter {STOCK} --controls 1")
    assert (found["machine"]["controls"], found["machine"]["controls_flagged"]) == (1, 0)
    assert found["summary"]["inconclusive"] == 0
    assert "1 identical row was measured as an A/A control: none flagged" in runs("report", "latest").words


def test_a_toolchain_is_a_side_too(runs: Harness) -> None:
    here = f"iree=={version('iree-base-compiler')}"
    ended = runs("compare", BASE, here, "--filter", "*/stock@*", "--format", "json")
    assert ended.returncode == 0, ended.stderr
    found = document(ended)
    assert verdicts(found) == {STOCK: "identical"}
    assert found["head"]["label"] == here
    assert latencies(found)[STOCK]["repro"][0] == f"harness compare {BASE} {here} --suite small.toml --filter {STOCK}"
