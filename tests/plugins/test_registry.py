"""Plugins by registered name: what installed packages offer, and what can be wrong with it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType

import pytest

from harness.errors import ExitCode, UsageError
from harness.plugins import Plugin, load_plugin, registered_plugins, registry
from tests.builders import flag_plugin

SHARE = flag_plugin("share-concat", "--iree-share", version="2")

Register = Callable[..., None]


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Register:
    """Pretend that these entry points are installed, and that their objects lie in a module `a_package`."""

    def register(*points: EntryPoint, **objects: object) -> None:
        module = ModuleType("a_package")
        vars(module).update(objects)
        monkeypatch.setitem(sys.modules, "a_package", module)
        installed = EntryPoints(points)
        monkeypatch.setattr(registry, "entry_points", lambda **wanted: installed.select(**wanted))

    return register


def plugin_point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "harness.plugins")


def refusal(name: str) -> str:
    with pytest.raises(UsageError) as caught:
        load_plugin(name)
    assert caught.value.exit_code == ExitCode.USAGE
    return str(caught.value)


def test_a_registered_plugin_is_loaded_by_its_name(register: Register) -> None:
    register(plugin_point("share-concat", "a_package:SHARE"), SHARE=SHARE)
    assert load_plugin("share-concat") is SHARE
    assert registered_plugins() == ("share-concat",)


def test_names_are_sorted_and_other_groups_are_not_looked_at(register: Register) -> None:
    register(
        plugin_point("zeta", "a_package:ZETA"),
        EntryPoint("rdb", "a_package:BUILDER", "harness.builders"),
        plugin_point("alpha", "a_package:ALPHA"),
    )
    assert registered_plugins() == ("alpha", "zeta")


def test_a_name_that_two_packages_register_is_nobodys(register: Register) -> None:
    register(plugin_point("tile", "a_package:TILE"), plugin_point("tile", "b_package:TILE"), TILE=SHARE)
    assert refusal("tile") == (
        "plugin 'tile' is registered by a_package:TILE and by b_package:TILE; remove all packages but one"
    )


def test_a_package_that_is_installed_twice_is_one(register: Register) -> None:
    register(plugin_point("tile", "a_package:TILE"), plugin_point("tile", "a_package:TILE"), TILE=SHARE)
    assert load_plugin("tile") is SHARE


def test_listing_plugins_imports_none(register: Register) -> None:
    register(plugin_point("broken", "no_such_package:PLUGIN"))
    assert registered_plugins() == ("broken",)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("share-concats", 'did you mean "share-concat"?'),
        ("unroll", "known: pad-early, share-concat; install the package that brings it"),
    ],
)
def test_an_unknown_name(name: str, hint: str, register: Register) -> None:
    register(plugin_point("share-concat", "a_package:SHARE"), plugin_point("pad-early", "a_package:PAD"))
    assert refusal(name) == f"there is no plugin '{name}'; {hint}"


def test_an_unknown_name_where_no_plugin_is_installed(register: Register) -> None:
    register()
    assert (
        refusal("unroll")
        == "there is no plugin 'unroll'; no installed package registers a plugin; install the package that brings it"
    )


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_package:PLUGIN", "No module named 'no_such_package'"),
        ("a_package:PLUGIN", "module 'a_package' has no attribute 'PLUGIN'"),
    ],
)
def test_a_plugin_that_does_not_import(value: str, reason: str, register: Register) -> None:
    register(plugin_point("broken", value))
    assert refusal("broken") == (
        f"plugin 'broken': {value} cannot be loaded ({reason}); repair or remove the package that registers it"
    )


@pytest.mark.parametrize("something", [Plugin, SHARE.options, lambda: SHARE], ids=["class", "flags", "function"])
def test_a_plugin_of_the_wrong_kind(something: object, register: Register) -> None:
    register(plugin_point("odd", "a_package:ODD"), ODD=something)
    assert refusal("odd") == ("plugin 'odd': a_package:ODD is not a harness.plugins.Plugin; ask its package's author")
