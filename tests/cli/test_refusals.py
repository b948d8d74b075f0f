"""Command lines that are refused before anything is done: status 2, one sentence, and nothing is written."""

import shlex
from pathlib import Path

import pytest

from harness.cli import run_command_line
from harness.metrics import PHASES

IR = "ir gone.toml a/b@c"
ONE_PHASE = "--format mlir prints one phase; say which with --phase"
TABLE = "--ops chooses what the table shows; leave it out with --format json"
TAKEN = "is the name of a Python package or a plugin already; choose another"
ON = "--fleet tcp://127.0.0.1:1"
WAITS = "waits for whoever measures there; leave one of them out"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"{IR} --format mlir", ONE_PHASE),
        (f"{IR} --format mlir --phase flow --phase stream", ONE_PHASE),
        (f"{IR} --format mlir --phase flow --phase flow", "gone.toml: there is no such file; check the path"),
        (f"{IR} --format json --ops linalg.*", TABLE),
        (f"{IR} --ops hosts:linalg.*", "there is no place 'hosts', as in 'hosts:linalg.*'; write host:..."),
        (f"{IR} --phase flow --phase flows", f"there is no phase 'flows'; name one of {', '.join(PHASES)}"),
        ("tune", "say what is tuned, as in `harness tune suites/models.toml --model efficientnet`"),
        ("tune --report", "--report: tuned holds no search that has come to its end; name its folder with --out"),
        ("tune small.toml --model nt", "small.toml: there is no model 'nt'; did you mean \"net\"?"),
        ("tune small.toml --device cpus", "small.toml: there is no device 'cpus'; did you mean \"cpu\"?"),
        ("tune small.toml --variant stok", "small.toml: there is no variant 'stok'; did you mean \"stock\"?"),
        ("list suites/esrgan.toml", "there is no such file; `harness new examples` writes the one that comes with the"),
        ("new plugin 'Fold It'", "a plugin cannot be called 'Fold It'; take small letters, digits and dashes: my-plug"),
        ("new plugin json", f"'json' {TAKEN}"),
        ("new plugin tuned", f"'tuned' {TAKEN}"),
        ("new suite small", "small.toml: is there already; choose another name, or another folder with --out"),
        ("new examples --out mine", "mine/docs: is there already; choose another folder with --out"),
        ("results tag latest", "give a run and a tag, as in `harness results tag latest quiet`"),
        ("results tag latest 'two words'", "'two words' is no tag; write letters, digits and . _ + -, at most 64"),
        ("results tag latest x --who 'a\tb'", "--who 'a b' is no name; write a line of at most 100 characters"),
        ("results tag 2027 x", "2027: there is no such folder; `harness run SUITE` makes a run"),
        ("report a --full-out x.md", "--full-out is for --format github; give that too, or leave --full-out out"),
        ("run", "give either a suite, as in `harness run suites/esrgan.toml`, or --resume with a run directory"),
        ("run --resume nowhere --toolchain 3.12.0", "own settings; leave out --toolchain"),
        ("explain a b --metric copies", "--metric copies: harness explain says where time goes; give latency, which"),
        (f"selfcheck suite.toml {ON}", "run it on each host, without --fleet"),
        ("run small.toml --quiet --verbose", "--quiet and --verbose contradict each other; leave one of them out"),
        (f"run small.toml --shard 1/2 {ON}", "over its hosts by itself; leave --shard out"),
        (f"run small.toml --jobs 2 {ON}", "give it to harness fleet worker"),
        (f"run small.toml --no-wait {ON}", WAITS),
        (f"compare a b --no-wait {ON}", WAITS),
        (f"compare a b --no-remeasure {ON}", "--fleet measures on hosts, and --no-remeasure measures nothing"),
        (f"compare a b --explain {ON}", "--explain measures on this machine, and --fleet on others"),
    ],
)
def test_a_command_line_that_is_refused(
    line: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "mine" / "docs").mkdir(parents=True)
    before = sorted(folder.rglob("*"))
    assert run_command_line(shlex.split(line)) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert words in sentence
    assert sorted(folder.rglob("*")) == before
