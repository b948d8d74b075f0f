"""What a reader sees; the snapshots are read line by line when they change."""

from __future__ import annotations

import re

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.doctor import Diagnosis, render_terminal

MACHINES = ("server", "laptop", "container", "silent")


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("machine", MACHINES)
def test_text(machine: str, width: int, diagnoses: dict[str, Diagnosis], snapshot: SnapshotAssertion) -> None:
    assert render_terminal(diagnoses[machine], width=width) == snapshot


@pytest.mark.parametrize("machine", MACHINES)
def test_lines_fit_but_commands_stay_whole(machine: str, diagnoses: dict[str, Diagnosis]) -> None:
    diagnosis = diagnoses[machine]
    lines = render_terminal(diagnosis, width=60).splitlines()
    commands = [finding.command for finding in diagnosis.findings if finding.command]
    assert {command for command in commands if any(line.strip() == command for line in lines)} == set(commands)
    assert not [line for line in lines if len(line) > 60 and line.strip() not in commands]
    assert not [line for line in lines if line != line.rstrip()]


def test_levels_are_words_and_marks_where_there_is_no_colour(diagnoses: dict[str, Diagnosis]) -> None:
    text = render_terminal(diagnoses["laptop"], width=80)
    for head in ("  + ok ", "  i note ", "  ! warning ", "  x missing "):
        assert head in text
    assert "\x1b" not in text
    assert text.isascii()


def test_colours_only_add_to_the_words(diagnoses: dict[str, Diagnosis], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = render_terminal(diagnoses["laptop"], width=80, color=True)
    assert "\x1b[33m  ! warning \x1b[0mturbo is on" in text
    assert re.sub(r"\x1b\[[0-9;]*m", "", text) == render_terminal(diagnoses["laptop"], width=80)


@pytest.mark.parametrize(
    ("machine", "end"),
    [
        ("server", "15 ok, 1 note, 2 missing. Nothing was found that makes times noisy."),
        ("container", "Nothing can be compiled or measured here before the toolchain is there."),
        ("laptop", "Measuring works, but times are noisier than they need be: see the warnings."),
    ],
)
def test_the_last_sentence_says_what_it_comes_to(machine: str, end: str, diagnoses: dict[str, Diagnosis]) -> None:
    assert render_terminal(diagnoses[machine], width=300).rstrip().endswith(end)
