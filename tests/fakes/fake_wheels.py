"""A pair in a few kilobytes: wheels of the right names that pip and uv install, with tools that do nothing."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

REVISION = "1234567890123456789012345678901234567890"


def write_wheels(
    folder: Path, version: str, *, runtime_version: str | None = None, runtime: str = "", tools: bool = True
) -> Path:
    """Write the wheels of a pair and of numpy into a folder, for pip's --find-links; the folder.

    Args:
        runtime_version: Of the runtime, where it is another one than the compiler's.
        runtime: Text of iree/runtime/__init__.py.
        tools: Whether the tools are in them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    compiler = {
        "iree/compiler/__init__.py": "",
        "iree/compiler/version.py": f'REVISIONS = {{"IREE": "{REVISION}"}}\n',
        "iree/compiler/_mlir_libs/libIREECompiler.so": f"library {version}",
    }
    libraries = {"iree/_runtime_libs/__init__.py": "", "iree/runtime/__init__.py": runtime}
    if tools:
        compiler["iree/compiler/_mlir_libs/iree-compile"] = "#!/bin/sh\n"
        libraries["iree/_runtime_libs/iree-run-module"] = "#!/bin/sh\n"
    write_wheel(folder, "iree-base-compiler", version, compiler, "Provides-Extra: onnx\n")
    write_wheel(folder, "iree-base-runtime", runtime_version or version, libraries, "Requires-Dist: numpy\n")
    write_wheel(folder, "numpy", "99.0", {"numpy/__init__.py": ""})
    return folder


def unpack_wheels(wheels: Path, folder: Path) -> Path:
    """Unpack all wheels of a folder into a folder of packages; that folder."""
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return folder


def write_wheel(
    folder: Path, package: str, version: str, files: Mapping[str, str], metadata: str = "", tags: str = "py3-none-any"
) -> Path:
    """Write one wheel of these files, with these further lines of metadata; the wheel."""
    stem = f"{package.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n{metadata}",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tags}\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    path = folder / f"{stem}-{tags}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(name, text)
    return path
