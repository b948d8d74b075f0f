"""A case: one model x variant x device x toolchain."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Case:
    """The unit of a run. Its name is for people, its id for machines; neither is parsed to learn a fact.

    Attributes:
        id: 16 hex digits: a hash of what is compiled and how it runs, without names and without the toolchain.
        name: Unique in a plan: `model/variant@device`, and `model/variant@device:toolchain` where there are several.
        toolchain: Version of the compiler and runtime pair.
        baseline: Whether the others of its group are compared with it: the suite's baseline variant, and of several
            toolchains the first.
        compile_flags: All flags of the device and the variant, in the order they are given to iree-compile.
        run_flags: The same for the runtime's tools and the worker.
        skip: Why it is not run on this machine, as a sentence; None: it is run.
        expected_failure: Part of the message with which it is known to fail; None: it should work.
    """

    id: str
    name: str
    model: str
    variant: str
    device: str
    toolchain: str
    baseline: bool
    uri: str
    backend: str
    pin: bool
    compile_flags: tuple[str, ...]
    run_flags: tuple[str, ...]
    plugins: tuple[str, ...]
    tags: tuple[str, ...]
    skip: str | None = None
    expected_failure: str | None = None

    @property
    def group(self) -> str:
        """Cases with the same group are measured against each other: one model on one device."""
        return f"{self.model}@{self.device}"
