"""docs/iree-developers.md, in a repository whose build chooses a release of IREE, and whose sixth commit is slower."""

import os
import re
from pathlib import Path

import pytest

from harness.toolchain import Toolchain
from tests.builders import commit, git
from tests.end_to_end.command import Ended, Harness
from tests.end_to_end.suites import BUILDER, CPU, PARAMS

DOCUMENT = Path(__file__).parents[2] / "docs" / "iree-developers.md"
# `cmake -S SOURCE -B BUILD ...` keeps where the source is; `cmake --build BUILD` lays out what a build of it has.
CMAKE = """\
#!/bin/sh -e
if [ "$1" != --build ]; then
  while [ "$1" != -S ]; do shift; done
  mkdir -p "$4"
  cd "$2" && pwd > "$OLDPWD/$4/source"
  exit
fi
cd "$2"
source=$(cat source)
packages=$(cat "$(dirname "$0")/$(cat "$source/release")")
rm -rf tools compiler runtime
mkdir -p tools compiler/bindings/python runtime/bindings/python
ln -s "$packages"/iree/compiler/_mlir_libs/* "$packages"/iree/_runtime_libs/iree-* tools
ln -s "$packages/iree" compiler/bindings/python
ln -s "$packages/iree" runtime/bindings/python
printf '#!/bin/sh\\nexec %s "$@" %s\\n' "$packages/iree/compiler/_mlir_libs/iree-compile" "$(cat "$source/flags")" > new
chmod +x new
mv new tools/iree-compile
"""
SUITE = f"""
name = "small"
baseline = "stock"

[models.tiny]
{BUILDER}
{PARAMS}
[variants.stock]

{CPU}"""
SLOWER = "--iree-global-opt-use-im2col-for-convs"
COMMITS = ["old", "old", "old", "broken", "new", "new", "new", "new"]


@pytest.fixture
def checkout(harness: Harness, older: Toolchain, real_toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch) -> Harness:
    """Eight commits: the first three choose an old release, the fourth does not build, the sixth adds a flag."""
    folder, cmake = harness.folder / "iree", harness.folder / "bin" / "cmake"
    folder.mkdir()
    cmake.parent.mkdir()
    (harness.folder / "small.toml").write_text(SUITE)
    for name, toolchain in (("old", older), ("new", real_toolchain)):
        (cmake.parent / name).write_text(str(toolchain.compiler_tools.parents[2]))
    cmake.write_text(CMAKE)
    cmake.chmod(0o755)
    git(folder, "init", "--quiet")
    for number, release in enumerate(COMMITS, start=1):
        (folder / "release").write_text(release)
        (folder / "flags").write_text(SLOWER if number >= 6 else "")
        commit(folder, f"Change {number}")
    git(folder, "tag", "good", "main~7")
    git(folder, "checkout", "--quiet", "-b", "work")
    git(folder, "branch", "--force", "main", "main~3")
    monkeypatch.setenv("PATH", os.pathsep.join([str(cmake.parent), os.environ["PATH"]]))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    return Harness(folder)


def test_what_the_page_says_works(checkout: Harness) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)
    (build,) = re.findall(r"^build\(\).*?^}\n", blocks[1], re.DOTALL | re.MULTILINE)

    def call(number: int) -> Ended:
        text = blocks[number].replace(build, "")
        text = text.replace("harness compare", "harness compare --row-budget 1 --row-cap 1")
        text = re.sub("harness (bisect|verdict)", r"\g<0> --metric dispatches", text)
        return checkout.shell(f"SUITE=../small.toml CASE=tiny/stock@cpu\nexport SUITE CASE\n{build}{text}")

    compared = call(1)
    assert "small.toml: IREE" in compared.stdout and "tiny/stock@cpu" in compared.stdout, compared.stderr
    again = call(2)
    assert again.returncode == 0 and "Identical modules (1)" in again.stdout, again.stdout + again.stderr
    git(checkout.folder, "branch", "--force", "main", "work")
    found = call(3)
    assert found.returncode == 0, found.stderr
    sixth = git(checkout.folder, "log", "-1", "--format=%H", "main~2")
    assert f"Since {sixth[:10]} (Change 6): dispatch count 20, and 10 with " in found.words
    bisected = call(4)
    assert f"{sixth} is the first bad commit" in bisected.stdout, bisected.stdout + bisected.stderr
