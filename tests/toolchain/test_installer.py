"""Which commands make an environment, and what is told of their failures; texts are those of pip 23 and uv 0.13."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

from harness.toolchain.install import Installer, why_it_failed

HERE = f"Python {sys.version_info[0]}.{sys.version_info[1]} on {sysconfig.get_platform()}"
PACKAGES = ("iree-base-compiler[onnx]==3.12.0", "iree-base-runtime==3.12.0", "numpy")

PIP_HAS_OTHERS = """\
ERROR: Could not find a version that satisfies the requirement iree-base-compiler[onnx]==3.12.0 (from versions: 2.9.0, \
3.8.0, 3.9.0, 3.10.0, 3.11.0, 3.13.0)
ERROR: No matching distribution found for iree-base-compiler[onnx]==3.12.0
"""
PIP_HAS_NONE = """\
ERROR: Could not find a version that satisfies the requirement iree-base-compiler[onnx]==3.12.0 (from versions: none)
ERROR: No matching distribution found for iree-base-compiler[onnx]==3.12.0
"""
PIP_OTHER_TAGS = (
    "  Skipping link: none of the wheel's tags (cp310-cp310-manylinux_2_28_x86_64) are compatible (run pip debug "
    "--verbose to show compatible tags): https://index.invalid/iree_base_compiler-3.12.0-cp310-cp310-manylinux_2_28_"
    "x86_64.whl (from https://index.invalid/simple/)\n"
)
PIP_OTHER_PYTHON = (
    "  Link requires a different Python (3.9.2 not in: '>=3.10'): https://index.invalid/iree_base_compiler-3.12.0-cp310-"
    "cp310-manylinux_2_28_x86_64.whl (from https://index.invalid/simple/) (requires-python:>=3.10)\n"
)
PIP_UNREACHABLE = """\
WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None, status=None)) after connection broken by \
'NewConnectionError('<HTTPSConnection object>: Failed to establish a new connection: [Errno -3] Temporary failure in \
name resolution')': /simple/iree-base-compiler/
Could not fetch URL https://index.invalid/simple/iree-base-compiler/: connection error: HTTPSConnectionPool(\
host='index.invalid', port=443): Max retries exceeded with url: /simple/iree-base-compiler/
"""
PIP_PAGE_IS_MISSING = "Could not fetch URL https://index.invalid/simple/x/: 404 Client Error: Not Found - skipping\n"
UV_HAS_OTHERS = """\
error: No solution found when resolving dependencies
  cause: Because there is no version of iree-base-compiler[onnx]==3.12.0 and you require \
iree-base-compiler[onnx]==3.12.0, we can conclude that your requirements are unsatisfiable.
"""
UV_OTHER_TAGS = """\
error: No solution found when resolving dependencies
  cause: Because iree-base-compiler[onnx]==3.12.0 has no wheels with a matching Python implementation tag (e.g., \
`cp39`) and you require iree-base-compiler[onnx]==3.12.0, we can conclude that your requirements are unsatisfiable.
"""
UV_UNREACHABLE = """\
error: Request failed after 3 retries in 10.4s
  cause: Failed to fetch: https://index.invalid/simple/iree-base-compiler/
  cause: error sending request for url (https://index.invalid/simple/iree-base-compiler/)
  cause: tcp connect error
"""
UV_OFFLINE = """\
error: No solution found when resolving dependencies
  cause: Because iree-base-compiler==3.12.0 needs to be downloaded from a registry and you require \
iree-base-compiler[onnx]==3.12.0, we can conclude that your requirements are unsatisfiable.

hint: Packages were unavailable because the network was disabled. When the network is disabled, registry packages may \
only be read from the cache.
"""
UV_NO_INDEX = """\
  cause: Because iree-base-compiler was not found in the provided package locations and you require \
iree-base-compiler[onnx]==3.12.0, we can conclude that your requirements are unsatisfiable.
"""
FULL = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"
UV_FULL = "error: Failed to install: numpy\n  cause: failed to copy file: No space left on device (os error 28)\n"
NO_ENSUREPIP = "The virtual environment was not created successfully because ensurepip is not available.\n"


def told(printed: str) -> str:
    sentence = why_it_failed("3.12.0", printed, "exited with status 1", "pip install 'x[onnx]==3.12.0'")
    assert "\n" not in sentence
    assert "index.invalid" not in sentence  # a company's own index is nobody else's business
    return sentence


@pytest.mark.parametrize("printed", [PIP_UNREACHABLE + PIP_HAS_NONE, UV_UNREACHABLE, UV_OFFLINE])
def test_no_network(printed: str) -> None:
    assert told(printed) == (
        "IREE 3.12.0 is not in the cache, and the package index cannot be reached; connect once to install it, and "
        "later runs need no network"
    )


def test_a_release_that_the_index_does_not_have() -> None:
    assert told(PIP_PAGE_IS_MISSING + PIP_HAS_OTHERS) == (
        "the package index has no IREE 3.12.0; give a --toolchain that it has, such as 3.8.0, 3.9.0, 3.10.0, 3.11.0, "
        "3.13.0"
    )
    assert told(UV_HAS_OTHERS) == "the package index has no IREE 3.12.0; give a --toolchain that was released"


@pytest.mark.parametrize("printed", [PIP_OTHER_TAGS + PIP_HAS_OTHERS, PIP_OTHER_PYTHON + PIP_HAS_NONE, UV_OTHER_TAGS])
def test_a_release_without_packages_for_this_python(printed: str) -> None:
    assert told(printed) == (
        f"IREE 3.12.0 has no packages for {HERE}; give another --toolchain, or run the harness under a Python that it "
        "is for"
    )


def test_files_of_another_system_beside_the_one_that_was_taken_say_nothing() -> None:
    assert "no packages for" not in told(PIP_OTHER_TAGS + FULL)
    assert "no packages for" not in told(PIP_OTHER_TAGS + "ERROR: hashes do not match\n")


@pytest.mark.parametrize("printed", [PIP_HAS_NONE, UV_NO_INDEX])
def test_an_index_without_iree(printed: str) -> None:
    assert told(printed).startswith(
        "IREE 3.12.0 is not in the cache, and no package index that is configured here has iree-base-compiler; check "
    )


@pytest.mark.parametrize("printed", [FULL, UV_FULL])
def test_a_full_disk(printed: str) -> None:
    assert told(printed) == (
        "IREE 3.12.0 cannot be installed: the disk of the cache or of the temporary folder is full; make room (an "
        "environment takes about 700 MB), or set HARNESS_CACHE or TMPDIR to another disk"
    )


def test_a_python_without_its_venv_package() -> None:
    assert told(NO_ENSUREPIP) == (
        "this Python cannot make environments; install its venv package (Debian's python3-venv), or uv"
    )


def test_anything_else_is_for_the_user_to_see_by_hand() -> None:
    assert told("ERROR: https://index.invalid/ says no\n") == (
        "IREE 3.12.0 cannot be installed (the installer exited with status 1); see what `pip install "
        "'x[onnx]==3.12.0'` says"
    )


def test_the_commands_of_pip_and_of_uv() -> None:
    folder = Path("there")
    python = str(folder / "bin" / "python")
    assert Installer(uv=None).commands(folder, "3.12.0") == (
        (sys.executable, "-I", "-m", "venv", "there"),
        (python, "-I", "-m", "pip", "install", "-vv", "--no-input", "--only-binary", ":all:", *PACKAGES),
    )
    assert Installer(uv="/bin/uv").commands(folder, "3.12.0") == (
        ("/bin/uv", "venv", "--no-project", "--python", sys.executable, "there"),
        ("/bin/uv", "pip", "install", "--python", python, "--only-binary", ":all:", *PACKAGES),
    )
    by_hand = "install 'iree-base-compiler[onnx]==3.12.0' iree-base-runtime==3.12.0 numpy"
    assert Installer(uv=None).by_hand("3.12.0") == f"pip {by_hand}"
    assert Installer(uv="/bin/uv").by_hand("3.12.0") == f"uv pip {by_hand}"
