"""The flags that the base's own suite gives IREE's tools: those that may stand in commands which an artifact has.

The suite is read out of a checkout that nobody but the repository's own people wrote, by the path that the artifact
names; so an artifact chooses among the suites of the base, and brings no flag of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from harness.errors import HarnessError
from harness.plugins import Applied, apply_plugin
from harness.suite.cases import chain_of
from harness.suite.flags import runs_code
from harness.suite.load import Suite, Variant, load_suite
from harness.text import one_line


def suite_flags(checkout: Path, suite: str, say: Callable[[str], None]) -> frozenset[str]:
    """All flags of a suite, of its flag sets, and of those of its plugins that are installed here."""
    try:
        root = checkout.resolve()
        path = (root / suite).resolve()
        if path.suffix != ".toml" or not path.is_file() or not path.is_relative_to(root):
            raise OSError("there is no such suite")
        return frozenset(_flags(load_suite(path).suite))
    except (OSError, ValueError, HarnessError) as error:
        say(
            f"{one_line(str(checkout))}: {one_line(suite)}: its flags are in no command, since it cannot be read there "
            f"({one_line(str(error))})"
        )
        return frozenset()


def _flags(suite: Suite) -> Iterator[str]:
    for device in suite.devices:
        yield from device.compile_flags
        yield from device.run_flags
    for variant in suite.variants:
        for flag_set in variant.flag_sets:
            yield from (*flag_set.compile, *flag_set.run)
        yield from (*variant.compile_flags, *variant.run_flags)
        plugins = _plugins(variant)
        for device in suite.devices if plugins else ():
            arranged = chain_of(suite, variant, device, plugins)
            flags = (*arranged.compile_flags, *arranged.run_flags)
            yield from (flag for flag in flags if not runs_code(flag))  # a reader does not load a plugin's code unasked


def _plugins(variant: Variant) -> tuple[Applied, ...]:
    """A variant's plugins; none where one of them is not installed here."""
    try:
        return tuple(apply_plugin(use.name, use.options, variant.name) for use in variant.plugins)
    except HarnessError:
        return ()
