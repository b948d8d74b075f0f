"""docs/plugins.md says what is there: the code of the example package, and the plugins that the harness brings."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
TEXT = (REPOSITORY / "docs" / "plugins.md").read_text()
FILES = {
    "1. A package": "pyproject.toml",
    "2. The plugin": "example_plugins/__init__.py",
    "3. The rewrite": "example_plugins/rewrites.py",
}


@pytest.mark.parametrize("step", FILES)
def test_the_code_of_each_step_is_the_packages(step: str) -> None:
    block = re.search(rf"\*\*{re.escape(step)}\*\*.*?\n```\w+\n(.*?)```", TEXT, re.DOTALL)
    assert block is not None
    there = (HERE / FILES[step]).read_text()
    lines = [line for line in block[1].splitlines() if not line.startswith(("from harness.plugins", "#"))]
    assert [line for line in lines if line.strip() and line not in there.splitlines()] == []


def test_the_built_in_plugins_are_listed() -> None:
    registered = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["entry-points"]
    section = TEXT.split("## The built-in plugins\n", 1)[1].split("\n## ", 1)[0]
    assert re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE) == sorted(registered["harness.plugins"])


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)", TEXT)
    assert links
    assert [link for link in links if not (REPOSITORY / "docs" / link).exists()] == []
