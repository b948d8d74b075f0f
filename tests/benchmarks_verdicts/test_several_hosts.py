"""Simulated hosts give what was recorded, made slower, noisier and off; one of them alone is no other than today's."""

import re
from dataclasses import replace

import pytest

from benchmarks.verdicts.several_hosts import (
    Host,
    equal_streams,
    play_on,
    several_hosts,
)
from benchmarks.verdicts.trials import BUDGET_S, as_sampled, play
from tests.benchmarks_verdicts.conftest import Script

AS_RECORDED = Host(slowness=1.0, noise=1.0, log_ratio=0.0)


def test_one_host_is_played_back_as_rows_of_one_machine_are(script: Script) -> None:
    stream = as_sampled(script(generations=150, change=0.02, spread=0.006))
    alone = play(stream, budget_s=BUDGET_S, start=6)
    trial = play_on(stream, [AS_RECORDED], [6], floor=0.01)
    here = tuple(replace(generation, host="") for generation in trial.outcome.generations)
    assert replace(trial.outcome, generations=here, name=alone.name) == alone
    assert trial.seconds == pytest.approx(0.5 * len(alone.generations))


def test_the_tables_are_of_quiet_streams_of_equal_modules_and_always_the_same(script: Script) -> None:
    names = ("loop A/A", "tiny A/A", "loop +3 %", "loop A/A beside a hog")
    streams = {name: script(name, generations=150, spread=0.003) for name in names}
    streams["block A/A"] = script("block A/A", generations=20)
    assert list(equal_streams(streams)) == ["loop A/A", "tiny A/A"]
    text = several_hosts(streams, trials=2)
    assert text == several_hosts(streams, trials=2)
    assert "Each line has 4 rows: 2 of each of the streams loop A/A, tiny A/A; in the first table 12 of equal" in text
    assert re.search(r"\| 8 \| 0 \(0\.00 % to [0-9.]+ %\) \| 100\.0 % \|", text)
