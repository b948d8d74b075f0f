"""`harness fleet`: what its commands refuse, and that Dask waits until somebody wants a fleet."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import run_command_line
from harness.fleet.access import MEMBER_FILES


def test_dask_is_imported_for_fleets_alone() -> None:
    program = "; ".join(
        (
            "import sys",
            "from harness.cli import run_command_line",
            "run_command_line(['--help'])",
            "run_command_line(['fleet', '--help'])",
            "import harness.cli.run, harness.cli.compare, harness.cli.fleet as places",
            "from harness.options import OnFleet",
            "places.bench_at(OnFleet()).__enter__().rows(None, None, None, 0.0)",
            "sys.exit(str({'dask', 'distributed', 'cryptography'} & set(sys.modules)))",
        )
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.strip() == "set()"


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("harness.fleet.find_spec", lambda _: None)
    assert run_command_line(["fleet", "status", "--fleet", "tls://bench"]) == 2
    assert "run pip install 'iree-harness[fleet]'" in capsys.readouterr().err


def test_certificates_of_a_fleet_and_of_one_more_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet, member = tmp_path / "fleet", tmp_path / "host-a"
    monkeypatch.setenv("HARNESS_FLEET_CERTIFICATES", str(fleet))  # where all commands look
    assert run_command_line(["fleet", "certificates"]) == 0
    assert run_command_line(["fleet", "certificates", str(member), "--authority", str(fleet), "--days", "7"]) == 0
    said = capsys.readouterr()
    assert f"{fleet}: the certificate of a member, valid until" in said.out
    assert f"{member}: the certificate of a member, valid until" in said.out
    assert "give it to no other machine" in said.err
    assert sorted(path.name for path in member.iterdir()) == sorted(MEMBER_FILES)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["scheduler", "--listen", "tls://0.0.0.0:8786"], "authority.pem, certificate.pem, key.pem missing"),
        (["scheduler", "--listen", "tcp://127.0.0.1:0"], "fleet scheduler does not run as root"),
        (["worker", "--scheduler", "tcp://127.0.0.1:1"], "fleet worker does not run as root"),
        (["worker", "--scheduler", "tcp://127.0.0.1:1", "--as-root", "--name", "a/b"], "is no name of a host"),
    ],
)
def test_what_is_refused(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HARNESS_FLEET_CERTIFICATES", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert run_command_line(["fleet", *arguments]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert words in sentence
