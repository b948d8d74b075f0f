"""`harness selfcheck` with the real compiler and runtime, and the line that every later report has."""

import json
import os
import re
from pathlib import Path

from tests.end_to_end.command import Harness


def test_a_check_is_told_and_every_later_report_carries_it(harness: Harness, tmp_path: Path) -> None:
    # Of its own is what the check leaves; what was compiled is everybody's.
    cache, shared = tmp_path / "cache", Path(os.environ["HARNESS_CACHE"])
    cache.mkdir()
    for name in ("builds", "ir", "models", "peaks", "toolchains"):
        (shared / name).mkdir(parents=True, exist_ok=True)
        (cache / name).symlink_to(shared / name)

    def call(*arguments: str) -> str:
        ended = harness(*arguments, HARNESS_CACHE=str(cache))
        assert ended.returncode == 0, ended.stderr
        return ended.words

    printed = call("selfcheck", "small.toml", "--filter", "*/stock@*", "--rows", "2", "--row-budget", "1")
    said = re.search(
        r"on this machine: (\d of 2 A/A rows flagged \(at most \d+ % by the 95 % bound\); detects)", printed
    )
    assert said
    assert "tiny/stock@cpu" in printed

    call("run", "small.toml", "--filter", "*/stock@*")
    (path,) = [path for path in harness.runs() if (path / "rounds.jsonl").exists()]
    facts = json.loads((path / "run.json").read_text())["environment"]["selfcheck"]
    assert (facts["rows"], facts["suite"], facts["seconds"]) == (2, "small.toml", 1)
    assert said[1] in call("report", str(path))
    assert said[1] in call("report", str(path), "--format", "markdown", "--full")
