"""How large a made-up run is, and how long its work takes: plain values that asker and hosts share."""

import hashlib
import json
from dataclasses import asdict, dataclass

KIB = 1024
# The toolchain that nobody has.
RELEASE, COMPILER = "3.13.0", "fa" * 32


@dataclass(frozen=True, kw_only=True)
class Size:
    """A made-up suite. Each of its groups is the cases of one model, on the one device.

    Attributes:
        variants: Of each model, so cases of a group.
        generations: That each group is measured.
        generation_s: Timed seconds of one generation of a group.
        program_bytes: Of each model's MLIR.
        argument_bytes: Of the one argument of each model.
    """

    models: int
    variants: int
    generations: int
    generation_s: float
    program_bytes: int = 64 * KIB
    argument_bytes: int = 256 * KIB

    @property
    def cases(self) -> int:
        """Of the suite."""
        return self.models * self.variants

    @property
    def budget_s(self) -> float:
        """Timed seconds of the whole run."""
        return self.generation_s * self.generations * self.models


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one simulated host does, in seconds and bytes.

    Attributes:
        cores: Compiles at once.
        compile_s: Of a case, on average: each has its own, between half and one and a half of it.
        check_s: Of a case.
        reference_s: Of a case, with iree-benchmark-module.
        start_s: Before the first round of a generation, when its workers start and load.
        turn_s: Of one turn of a case.
        peak_s: Once a host, what its processors reach.
        module_bytes: Of a case.
        output_bytes: That a check keeps, of a case.
    """

    cores: int
    compile_s: float
    check_s: float
    reference_s: float
    start_s: float
    turn_s: float
    peak_s: float
    module_bytes: int = 256 * KIB
    output_bytes: int = 64 * KIB

    def of_a_case_s(self, size: Size) -> float:
        """Of a host's time, if nothing is waited for."""
        generations_s = size.generations * (self.start_s + size.generation_s) / size.variants
        return self.compile_s / self.cores + self.reference_s + generations_s

    def compile_of(self, case: str) -> float:
        """Seconds that a case compiles, always the same."""
        return self.compile_s * (0.5 + share_of(case))


def share_of(name: str) -> float:
    """A number from 0 to 1 that a name has, as random as a hash."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") / 2**32


def to_text(value: Size | Work) -> str:
    """For a command line."""
    return json.dumps(asdict(value))


def size_in(text: str) -> Size:
    """As `to_text` wrote it."""
    return Size(**json.loads(text))


def work_in(text: str) -> Work:
    """As `to_text` wrote it."""
    return Work(**json.loads(text))
