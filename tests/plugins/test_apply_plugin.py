"""A plugin with a variant's options: what it does is known, or said to be wrong, before anything is compiled."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from harness.errors import SuiteError
from harness.plugins import (
    ExecutablePlugin,
    Flags,
    Plugin,
    PluginFile,
    Rewrite,
    Step,
    TransformSpec,
    apply_plugin,
    package_file,
    registry,
    written_file,
)
from tests.builders import a_plugin

WHERE = "s.toml: [variants.wide] plugins"
PACKAGE = "a_rewriting_package"


@dataclass(frozen=True, kw_only=True)
class TileOptions:
    """A bounded number and a list."""

    width: Annotated[int, Field(ge=1, le=64)] = 8
    sizes: tuple[int, ...] = (4, 4)


def tiling(steps: Callable[[TileOptions], tuple[Step, ...]]) -> Plugin[TileOptions]:
    return Plugin(name="tile", version="3", description="", options=TileOptions, steps=steps)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Plugin[Any]], None]:
    """Pretend that a package registers this plugin."""

    def install(plugin: Plugin[Any]) -> None:
        monkeypatch.setattr(registry, "load_plugin", lambda name: {plugin.name: plugin}[name])

    return install


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An importable package with a module of rewrites."""
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "rewrites.py").write_text("def fold(module):\n    return 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield folder
    sys.modules.pop(PACKAGE, None)


Install = Callable[[Plugin[Any]], None]


def refusal(name: str, **options: Any) -> str:
    with pytest.raises(SuiteError) as caught:
        apply_plugin(name, options, WHERE)
    message = str(caught.value)
    assert message.startswith(f"{WHERE}: ")
    assert "\n" not in message
    return message.removeprefix(f"{WHERE}: ")


def test_steps_are_made_of_the_options_and_options_are_json(installed: Install) -> None:
    installed(tiling(lambda options: (Flags(compile=(f"--width={options.width}",)),)))
    applied = apply_plugin("tile", {"width": 16, "sizes": [1, 2]}, WHERE)
    assert applied.steps == (Flags(compile=("--width=16",)),)
    assert applied.options == {"width": 16, "sizes": [1, 2]}
    assert apply_plugin("tile", {}, WHERE).options == {"width": 8, "sizes": [4, 4]}
    assert applied.sources_sha256 == ""


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"widht": 4}, "tile.widht is not an option of plugin 'tile'; did you mean \"width\"?"),
        ({"width": 65}, "tile.width: input should be less than or equal to 64, not '65'"),
        ({"width": "8"}, "tile.width: input should be a valid integer, not '8'"),
        ({"sizes": [1, "2"]}, "tile.sizes: input should be a valid integer, not \"[1, '2']\""),
    ],
)
def test_wrong_options(installed: Install, options: dict[str, Any], sentence: str) -> None:
    installed(tiling(lambda _: ()))
    assert refusal("tile", **options) == sentence


def test_a_date_is_no_option(installed: Install) -> None:
    installed(tiling(lambda _: ()))
    assert (
        refusal("tile", width=date(2026, 11, 21)) == "tile: its options hold a date or a time; write that as a string"
    )


@pytest.mark.parametrize("steps", [Flags(compile=()), [Flags(compile=())], ("--flag",), None])
def test_steps_are_a_tuple_of_steps(installed: Install, steps: Any) -> None:
    installed(tiling(lambda _: steps))
    assert refusal("tile") == "plugin 'tile': its steps are no tuple of steps; ask its package's author"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"registers": 3}, "tuned: registers is 3, and no vector unit has fewer than 4"),
        ({"configurations": [{"op": "linalg.matmul"}]}, "tuned: configurations[0].pipeline must be a string"),
    ],
)
def test_lowering_configurations_are_checked_with_the_suite(options: dict[str, Any], sentence: str) -> None:
    assert refusal("tuned", **options) == sentence


def test_an_option_of_a_plugin_that_has_none(installed: Install) -> None:
    installed(a_plugin("fold"))
    assert refusal("fold", deep=True) == "fold.deep is not an option of plugin 'fold'; it has none"


def test_a_plugin_that_is_not_installed() -> None:
    assert refusal("no-such-plugin").startswith("there is no plugin 'no-such-plugin'; ")


def test_a_plugin_is_registered_by_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases are identified by it, and reports name it."""
    monkeypatch.setattr(registry, "load_plugin", lambda _: a_plugin("fold"))
    assert refusal("unfold") == "plugin 'unfold' calls itself 'fold'; ask its package's author"


def test_a_plugin_may_refuse_a_combination_of_options(installed: Install) -> None:
    def steps(options: TileOptions) -> tuple[Step, ...]:
        raise ValueError(f"width {options.width} is not\n a multiple of sizes {options.sizes}")

    installed(tiling(steps))
    assert refusal("tile") == (
        "plugin 'tile' refuses these options (ValueError: width 8 is not a multiple of sizes (4, 4)); "
        "change them or repair it"
    )


def test_a_file_that_is_missing_from_the_plugins_package(installed: Install, package: Path) -> None:
    installed(tiling(lambda _: (TransformSpec(file=package_file(PACKAGE, "spec.mlir")),)))
    assert refusal("tile") == (
        f"plugin 'tile': package {PACKAGE} has no file spec.mlir; install it again, or ask its author"
    )


def test_a_file_that_is_gone_by_the_time_it_is_read(installed: Install, tmp_path: Path) -> None:
    gone = PluginFile(name="kernel.so", path=tmp_path / "kernel.so")
    installed(a_plugin("link", ExecutablePlugin(file=gone)))
    assert refusal("link") == (
        f"plugin 'link': {tmp_path}/kernel.so cannot be read (No such file or directory); install its package again"
    )


def test_the_files_of_all_steps_are_known(installed: Install) -> None:
    spec, kernel = written_file("spec.mlir", "module {}"), written_file("kernel.so", "x")
    installed(a_plugin("link", TransformSpec(file=spec), Flags(compile=("--a",)), ExecutablePlugin(file=kernel)))
    assert apply_plugin("link", {}).files == (spec, kernel)


@pytest.mark.parametrize("function", ["no_such_package:fold", f"{PACKAGE}.none:fold", f"{PACKAGE}.rewrites", "", ":"])
def test_a_rewrite_of_no_installed_package(installed: Install, package: Path, function: str) -> None:
    installed(a_plugin("fold", Rewrite(function=function)))
    assert refusal("fold") == (
        f"plugin 'fold': its rewrite {function!r} names no function of an installed package, "
        "as in 'package.module:name'"
    )


@pytest.mark.parametrize("module", ["sys", "builtins"])
def test_a_rewrite_in_no_file(installed: Install, module: str) -> None:
    installed(a_plugin("fold", Rewrite(function=f"{module}:exit")))
    assert f"its rewrite '{module}:exit' names no function of an installed package" in refusal("fold")


@pytest.mark.parametrize(
    ("phase", "hint"),
    [
        ("inputs", 'did you mean "input"?'),
        ("preprocess", 'did you mean "preprocessing"?'),
        ("hal", "known: abi, dispatch-creation, flow, global-optimization, input, preprocessing, stream"),
    ],
)
def test_a_phase_that_does_not_exist_or_comes_too_late(
    installed: Install, package: Path, phase: str, hint: str
) -> None:
    installed(a_plugin("fold", Rewrite(function=f"{PACKAGE}.rewrites:fold", phase=phase)))
    assert refusal("fold") == f"plugin 'fold': its rewrite stands at phase '{phase}', where none can; {hint}"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise RuntimeError('no\\nluck')", "RuntimeError: no luck"),
        ("import no_such_dependency", "ModuleNotFoundError: No module named 'no_such_dependency'"),
        ("def", "SyntaxError: invalid syntax (__init__.py, line 1)"),
    ],
)
def test_a_package_that_fails_to_import(installed: Install, package: Path, code: str, reason: str) -> None:
    (package / "__init__.py").write_text(code)
    installed(a_plugin("fold", Rewrite(function=f"{PACKAGE}.rewrites:fold")))
    assert refusal("fold") == (
        f"plugin 'fold': its rewrite '{PACKAGE}.rewrites:fold' lies in a package that cannot be imported ({reason}); "
        "repair or remove it"
    )


def test_the_rewrites_module_is_not_imported_by_the_harness(installed: Install, package: Path) -> None:
    (package / "rewrites.py").write_text("raise RuntimeError('iree.compiler is in the toolchain, not here')\n")
    installed(a_plugin("fold", Rewrite(function=f"{PACKAGE}.rewrites:fold")))
    assert apply_plugin("fold", {}).sources_sha256


def test_editing_a_source_of_the_rewrites_package_gives_another_hash(installed: Install, package: Path) -> None:
    installed(a_plugin("fold", Rewrite(function=f"{PACKAGE}.rewrites:fold")))

    def sources() -> str:
        return apply_plugin("fold", {}).sources_sha256

    before = sources()
    assert sources() == before
    (package / "rewrites.py").write_text("def fold(module):\n    return 1\n")
    edited = sources()
    (package / "helpers.py").write_text("FACTOR = 2\n")
    with_helper = sources()
    (package / "notes.txt").write_text("no Python")
    assert len({before, edited, with_helper}) == 3
    assert sources() == with_helper
