"""The detectors: the harness's own, and others', each in an environment of its own since their pins conflict."""

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.history.detection_scores import Said
from harness.cache import cache_root
from harness.errors import UsageError
from harness.process import Limits, run
from harness.stats.change_points.find import ChangePoint, find_changes
from harness.stats.pairing import FloatArray
from harness.toolchain.find import environment_python

OWN = "this harness"
_SCRIPT = Path(__file__).with_name("detection_others.py")
_INSTALL = Limits(seconds=1800)
_ANSWER = Limits(seconds=3600)

Answers = dict[str, list[tuple[Said, ...]]]


def ask_own(series: Sequence[FloatArray]) -> Answers:
    """What the harness says of each."""
    return {OWN: [tuple(_said(one) for one in find_changes(values)) for values in series]}


def _said(change: ChangePoint) -> Said:
    drift = change.kind == "drift"
    return Said(index=change.index, end=change.end, low=change.low, high=change.high, up=change.ratio > 1, drift=drift)


@dataclass(frozen=True, kw_only=True)
class Other:
    """Another tool.

    Attributes:
        package: What is installed, with its release.
        tool: What detection_others.py, which runs in its environment, calls it.
        read: From one answer of the script to what is said, by detector.
    """

    package: str
    tool: str
    detectors: tuple[str, ...]
    read: Callable[[list[list[int]]], tuple[tuple[Said, ...], ...]]

    def python(self) -> Path:
        """Its environment's Python; the environment is made where it is not there.

        Raises:
            UsageError: It cannot be made.
        """
        folder = cache_root() / "rivals" / self.package.replace("==", "-")
        python = environment_python(folder)
        if (folder / "whole").is_file():
            return python
        shutil.rmtree(folder, ignore_errors=True)
        sys.stderr.write(f"Installing {self.package} into {folder} ...\n")
        for command in (
            (sys.executable, "-I", "-m", "venv", str(folder)),
            (str(python), "-I", "-m", "pip", "install", "--quiet", "--no-input", self.package),
        ):
            finished = run(command, limits=_INSTALL, env={"PIP_USER": "0"})
            if not finished.ok:
                raise UsageError(
                    f"{self.package} cannot be installed into {folder} ({finished.how_it_ended(_INSTALL)}); see what "
                    f"`pip install {self.package}` says, or leave --others out"
                )
        (folder / "whole").touch()
        return python

    def ask(self, series: Sequence[FloatArray]) -> Answers:
        """What it says of each.

        Raises:
            UsageError: It failed.
        """
        with tempfile.TemporaryDirectory() as folder:
            asked, answered = Path(folder) / "series.json", Path(folder) / "answers.json"
            asked.write_text(json.dumps([values.tolist() for values in series]))
            command = (str(self.python()), str(_SCRIPT), self.tool, str(asked), str(answered))
            finished = run(command, limits=_ANSWER)
            if not finished.ok:
                last = (finished.stderr.strip().splitlines() or [""])[-1]
                raise UsageError(f"{self.package} failed ({finished.how_it_ended(_ANSWER)}): {last}")
            answers = [self.read(one) for one in json.loads(answered.read_text())]
        return {name: [one[place] for one in answers] for place, name in enumerate(self.detectors)}


def _steps(found: Sequence[Sequence[int]]) -> tuple[Said, ...]:
    return tuple(Said(index=one[0], end=one[0], low=one[0], high=one[0], up=bool(one[1])) for one in found)


OTAVA = Other(
    package="apache-otava==0.8.0",
    tool="otava",
    detectors=("Otava 0.8.0",),
    read=lambda found: (_steps(found),),
)
ASV = Other(
    package="asv==0.6.6",
    tool="asv",
    detectors=("asv 0.6.6, steps", "asv 0.6.6, published"),
    read=lambda found: (_steps(found), _steps([one for one in found if one[2]])),
)
OTHERS = (OTAVA, ASV)
