"""A small suite, beside the files it names, in a folder of its own that is the current one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.small_suite import FLAGS

SUITE = """\
name = "small"
baseline = "stock"
flagset_files = ["flags.toml"]

[models.net]
mlir = "net.mlir"
function = "main"
inputs = [{ shape = [4, 8] }]

[variants.stock]

[variants.tiled]
flagsets = ["tiling"]

[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
"""

WriteSuite = Callable[..., Path]


def replaced(text: str, old: str, new: str) -> str:
    """The text with its one `old` replaced; without an old, the new is appended."""
    if not old:
        return text + new
    assert text.count(old) == 1, f"{old!r} is not in the text exactly once"
    return text.replace(old, new)


@pytest.fixture
def write_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteSuite:
    """Write the small suite with one piece replaced by another; its path, as a user there would type it."""
    monkeypatch.chdir(tmp_path)
    Path("net.mlir").touch()

    def write(old: str = "", new: str = "", *, flags: str = FLAGS) -> Path:
        path = Path("suite.toml")
        path.write_text(replaced(SUITE, old, new))
        Path("flags.toml").write_text(flags)
        return path

    return write
