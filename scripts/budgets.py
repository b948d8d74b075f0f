"""Every room of harness/ keeps to its budget of lines, which pyproject.toml has in [tool.harness.budgets].

    python scripts/budgets.py

A room that has outgrown its own is named, and the exit status is 1. Take lines away elsewhere in the room, or raise
its budget in the commit that needs it, and say there why.
"""

import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
CORE = "core"  # the rooms of one file


def lines_by_room() -> dict[str, int]:
    """Lines of Python in each room, blank ones and comments included."""
    lines: dict[str, int] = {}
    for file in (ROOT / "harness").rglob("*.py"):
        folders = file.relative_to(ROOT / "harness").parts[:-1]
        room = folders[0] if folders else CORE
        lines[room] = lines.get(room, 0) + len(file.read_text().splitlines())
    return lines


def main() -> int:
    """Print what is wrong, and return the exit status."""
    budgets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["harness"]["budgets"]
    lines = lines_by_room()
    wrong = [
        f"harness/{room} has {lines.get(room, 0):,} lines, and its budget in pyproject.toml is {budgets.get(room, 0):,}"
        for room in sorted(lines.keys() | budgets.keys())
        if lines.get(room, 0) > budgets.get(room, 0) or room not in lines
    ]
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    sys.stdout.write(f"{sum(lines.values()):,} lines of {sum(budgets.values()):,} in {len(lines)} rooms\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
