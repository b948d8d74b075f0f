"""docs/plugins.md and docs/peers.md say what is there: signatures, built-in plugins, the example package's code."""

import ast
import re
from importlib.metadata import entry_points
from pathlib import Path
from typing import get_args

import pytest

from harness import peers, plugins

REPOSITORY = Path(__file__).parents[2]
PLUGIN_NAMES = {"Plugin", "package_file", "written_file", *(kind.__name__ for kind in get_args(plugins.Step))}
INTERFACES = {
    "plugins.md": ("harness/plugins/plugin.py", PLUGIN_NAMES),
    "peers.md": ("harness/peers/peer.py", set(peers.__all__)),
}


def signatures(code: str) -> dict[str, list[str]]:
    """Of each class its fields with types and defaults, of each function its arguments and result."""
    found: dict[str, list[str]] = {}
    for node in ast.parse(code).body:
        if isinstance(node, ast.ClassDef):
            inherited = [field for base in node.bases for field in found.get(ast.unparse(base), [])]
            found[node.name] = inherited + [ast.unparse(line) for line in node.body if isinstance(line, ast.AnnAssign)]
        elif isinstance(node, ast.FunctionDef):
            found[node.name] = [ast.unparse(node.args), ast.unparse(node.returns) if node.returns else ""]
    return found


def documented(page: str) -> str:
    """The code below the heading Signatures."""
    text = (REPOSITORY / "docs" / page).read_text()
    block = re.search(r"\n## Signatures\n.*?```python\n(.*?)```", text, re.DOTALL)
    assert block is not None
    return block[1]


@pytest.mark.parametrize("page", INTERFACES)
def test_documented_signatures_are_those_of_the_code(page: str) -> None:
    source, names = INTERFACES[page]
    there = signatures((REPOSITORY / source).read_text())
    assert signatures(documented(page)) == {name: there[name] for name in there if name in names}


def test_the_table_of_steps_has_their_fields_in_order() -> None:
    text = (REPOSITORY / "docs" / "plugins.md").read_text()
    table = dict(re.findall(r"^\| `(\w+)\(([^)]*)\)` \|", text, re.MULTILINE))
    code = signatures(documented("plugins.md"))
    assert {name: fields.split(", ") for name, fields in table.items()} == {
        kind.__name__: [field.partition(":")[0] for field in code[kind.__name__]] for kind in get_args(plugins.Step)
    }


def test_the_built_in_plugins_are_all_listed_with_their_options() -> None:
    text = (REPOSITORY / "docs" / "plugins.md").read_text()
    section = text.split("## The built-in plugins\n", 1)[1].split("\n## ", 1)[0]
    listed = dict(re.findall(r"^\| `([\w-]+)` \| [^|]+ \|([^|]*)\|$", section, re.MULTILINE))
    assert list(listed) == sorted(name for name in plugins.PLUGINS.names if name in listed)
    registered = entry_points(group=plugins.PLUGINS.group)
    assert set(listed) == {point.name for point in registered if point.value.startswith("harness.")}
    for name, options in listed.items():
        fields = plugins.PLUGINS.find(name).options.__dataclass_fields__
        assert set(fields) <= set(re.findall(r"`([\w-]+)`", options)), name


@pytest.mark.parametrize("page", INTERFACES)
def test_what_the_examples_import_is_there_and_links_lead_somewhere(page: str) -> None:
    text = (REPOSITORY / "docs" / page).read_text()
    for names in re.findall(r"^from harness\.(?:plugins|peers) import (.+)$", text, re.M):
        assert set(names.split(", ")) <= {*plugins.__all__, *peers.__all__}
    links = re.findall(r"\]\((?!http)([^)#]+)", text)
    assert [link for link in links if not (REPOSITORY / "docs" / link).exists()] == []


@pytest.mark.parametrize(
    ("step", "file"),
    [
        ("1. A package", "pyproject.toml"),
        ("2. The plugin", "example_plugins/__init__.py"),
        ("3. The rewrite", "example_plugins/rewrites.py"),
    ],
)
def test_the_code_of_each_step_is_the_example_packages(step: str, file: str) -> None:
    text = (REPOSITORY / "docs" / "plugins.md").read_text()
    block = re.search(rf"\*\*{re.escape(step)}\*\*.*?\n```\w+\n(.*?)```", text, re.DOTALL)
    assert block is not None
    there = (REPOSITORY / "tests" / "example_plugins" / file).read_text().splitlines()
    lines = [line for line in block[1].splitlines() if not line.startswith(("from harness.plugins", "#"))]
    assert [line for line in lines if line.strip() and line not in there] == []
