"""Packages whose names come when they are asked for."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

PACKAGES = ("harness.suite",)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_is_there(name: str) -> None:
    package = importlib.import_module(name)
    for one in package.__all__:
        assert getattr(package, one) is getattr(package, one)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_alone_loads_none_of_its_modules(name: str) -> None:
    code = f"import sys, {name}; print([one for one in sys.modules if one.startswith('{name}.')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
