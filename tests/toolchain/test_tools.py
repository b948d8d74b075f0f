"""What IREE's tools know and print, what `host` means, and which devices a driver finds."""

import platform
from dataclasses import replace
from pathlib import Path

import pytest

from harness import process
from harness.errors import ToolchainError
from harness.machine.environment import processor_identity
from harness.process import Limits
from harness.toolchain import Toolchain, compiler_flags, runtime_flags
from harness.toolchain.devices import (
    VULKAN_DRIVERS,
    DeviceInfo,
    DeviceProbe,
    environment_for,
    find_manifest,
    parse_dump,
    probe_driver,
    probe_vulkan_driver,
)
from harness.toolchain.host_cpu import TargetCpu, environment_here, host_target_cpu, without_host
from harness.toolchain.tools import error_lines, excerpt, merge_flags, status_text, tail, warning_lines
from tests.fakes.fake_toolchain import calls, make_fake_toolchain
from tests.toolchain.conftest import ScriptTool


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        (("--a=1", "--b=1"), ("--a=2",), ("--b=1", "--a=2")),
        (("--p=1", "--p=2", "--q=1"), ("--p=3", "--p=4"), ("--q=1", "--p=3", "--p=4")),
        (("-a=1",), ("--a=2",), ("--a=2",)),
    ],
    ids=["a later group wins", "a group may hold a list", "one dash or two"],
)
def test_groups_merge(first: tuple[str, ...], second: tuple[str, ...], merged: tuple[str, ...]) -> None:
    assert merge_flags(first, second) == merged


def test_the_real_tools_know_their_flags_and_are_asked_once(
    real_toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_compiler, of_runtime = compiler_flags(real_toolchain), runtime_flags(real_toolchain)
    assert of_compiler >= {"iree-hal-target-device", "iree-opt-level", "mlir-print-ir-after-all", "o"}
    assert len(of_compiler) > 1000
    assert of_runtime >= {"device", "batch_size", "device_allocator", "task_topology_group_count"}
    assert "iree-opt-level" not in of_runtime
    monkeypatch.setattr(process, "spawn", lambda *_, **__: pytest.fail("a tool is asked again"))
    assert (compiler_flags(real_toolchain), runtime_flags(real_toolchain)) == (of_compiler, of_runtime)


HELP = """cat <<'END'
OVERVIEW: a compiler, see --nothing
OPTIONS:
  --first=<string>     - What --second does
    =value             - of the first
  -O                   - A letter
                         --third is not an option here
END"""


def test_what_a_help_text_says_beside_its_flags_is_no_flag_and_another_compiler_is_asked_anew(
    script_tool: ScriptTool,
) -> None:
    compiler = script_tool(HELP, "iree-compile")
    assert compiler_flags(compiler) == {"first", "O"}
    script_tool("echo '  --new - An option'", "iree-compile")
    assert compiler_flags(compiler) == {"first", "O"}
    assert compiler_flags(replace(compiler, compiler_sha256="1" * 64)) == {"new"}
    assert compiler_flags(replace(compiler, version="3.14.0")) == {"new"}


def test_a_tool_that_does_not_say_its_flags(script_tool: ScriptTool) -> None:
    scripted = script_tool("exit 7", "iree-compile")
    nothing = r"^iree-compile --help-list-hidden lists no flags \(exited with status 7\); reinstall the toolchain$"
    with pytest.raises(ToolchainError, match=nothing):
        compiler_flags(scripted)
    gone = r"^iree-benchmark-module cannot be started \(No such file or directory\); reinstall the toolchain$"
    with pytest.raises(ToolchainError, match=gone):
        runtime_flags(scripted)


# A pass that does not exist, and a parenthesis that is not closed: both exit with 0 and write a module.
BOGUS = "'bogus' does not refer to a registered pass or pass pipeline"
UNREGISTERED = f"""\
MLIR Textual PassPipeline Parser:1:1: error: {BOGUS}
bogus
^
ERROR: mismatched parenthesis in pass pipeline `builtin.module(bogus)`
"""

GENERIC_CPU = "model.mlir:5:8: warning: while creating CPU target:\x20\nDefaulting to a generic CPU\n\nThis can be\n"


@pytest.mark.parametrize(
    ("printed", "errors", "warnings"),
    [
        (UNREGISTERED, (BOGUS, "mismatched parenthesis in pass pipeline `builtin.module(bogus)`"), ()),
        ("model.mlir:1:17: error: no type\nfunc.func @main( {\n", ("no type",), ()),
        ('  // error: in a comment of the "source"\n', (), ()),
        # A warning that only announces the next line has that line.
        (
            GENERIC_CPU,
            (),
            ("while creating CPU target: Defaulting to a generic CPU",),
        ),
        ("a.mlir:1:1: warning: cut short:", (), ("cut short",)),
        ("a.mlir:1:1: warning: slow\nb.mlir:2:2: warning: slow\nWARNING: odd\n", (), ("slow", "odd")),
    ],
)
def test_errors_and_warnings_of_the_compiler(printed: str, errors: tuple[str, ...], warnings: tuple[str, ...]) -> None:
    assert (error_lines(printed), warning_lines(printed)) == (errors, warnings)


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (
            "c/runtime/src/iree/modules/hal/utils/buffer_diagnostics.c:225: INVALID_ARGUMENT; input0 shape dimension 1 "
            "mismatch; expected 8 but have 7; expected shape `4x8`, actual shape `4x7`; while invoking native function "
            "hal.buffer_view.assert; while calling import; \n[ 0] bytecode module@1:192 -; invoking function 'main'",
            "INVALID_ARGUMENT; input0 shape dimension 1 mismatch; expected 8 but have 7; expected shape `4x8`, actual "
            "shape `4x7`",
        ),
        ("\n  a library is missing\nand more\n", "a library is missing"),
    ],
)
def test_the_reason_of_a_runtime_tool_is_its_status(printed: str, reason: str) -> None:
    assert status_text(printed) == reason


@pytest.mark.parametrize(
    ("printed", "lines", "kept"),
    [
        ("a\nb\nc\n\n", 2, "b\nc"),  # without an error the last words say what went wrong
        ("m.mlir:1:2: warning: a\nm.mlir:3:4: error: b\nc\nd\ne\n", 3, "m.mlir:3:4: error: b\nc\nd"),
        # A later error may be the one that a suite expects.
        ("error: a\nb\nc\nd\ne\nf\nerror: g\nh\nerror: g\n", 4, "error: a\nb\n...\nerror: g"),
        ("\x1b[31merror: a\x1b[0m\n\x7fELF\x00\ufffd\n\tb\n", 4, "error: a\n\tb"),
    ],
)
def test_an_excerpt_begins_at_the_first_error_and_leaves_out_what_nobody_can_read(
    printed: str, lines: int, kept: str
) -> None:
    assert excerpt(printed, lines=lines) == kept


def test_a_target_is_named_without_the_features_of_its_cpu() -> None:
    features = ",".join(f"+feature{number}" for number in range(60))
    kept = '#hal.executable.target<"llvm-cpu", "embedded-elf-x86_64", '
    target = kept + f'{{cpu = "znver4", cpu_features = "{features}"}}>'
    printed = f"m.mlir:1:2: error: failed to run translation for backend {target}\n"
    short = f"failed to run translation for backend {kept}{{...}}>"
    assert error_lines(printed) == (short,)
    assert tail("error: a\nb\nValueError: c\n", lines=2) == "b\nValueError: c", "where Python's exception is"
    assert excerpt(printed) == f"m.mlir:1:2: error: {short}"


# --- What `host` means to a compiler ---

_EPYC = TargetCpu(name="znver3", features="+avx2,-avx512f")


def test_host_is_written_out_and_other_flags_stay() -> None:
    flags = ("--a", "--iree-llvmcpu-target-cpu=host", "--b=host", "--iree-llvmcpu-target-cpu-features=host", "--c")
    assert without_host(flags, _EPYC) == ("--a", *_EPYC.flags, "--b=host", "--c")
    generic = ("--iree-llvmcpu-target-cpu=generic", "--iree-llvmcpu-target-cpu-features=+avx2")
    assert without_host(generic, _EPYC) == generic


def test_a_compiler_that_does_not_say_is_named_and_asked_again(tmp_path: Path) -> None:
    silent = make_fake_toolchain(tmp_path, always={"iree-compile": ["--fake-stderr=no such flag", "--fake-exit=1"]})
    for _ in range(2):
        with pytest.raises(
            ToolchainError, match=r"iree-compile 0.0.0 does not say which CPU it compiles for \(no such"
        ):
            host_target_cpu(silent, "some CPU")
    assert len(calls(silent)) == 2


def test_the_compiler_is_asked_once(real_toolchain: Toolchain, tmp_path: Path) -> None:
    here = environment_here()
    cpu = host_target_cpu(real_toolchain, processor_identity(here))
    assert cpu.name == here["cpu"]["llvm"] not in ("", "host", "generic")
    assert cpu.features.startswith(("+", "-"))
    gone = replace(real_toolchain, compiler_tools=tmp_path / "gone")
    assert host_target_cpu(gone, processor_identity(here)) == cpu


LIMITS = Limits(seconds=60)


# What follows the source position in what iree-run-module prints elsewhere.
NO_LOADER = "NOT_FOUND; Vulkan loader library not found; ensure it is installed:\n  Tried: libvulkan.so.1\n"
LIBCUDA = "CUDA driver library 'libcuda.so'/'nvcuda.dll' not available"
NO_CUDA = f"UNAVAILABLE; {LIBCUDA}; please ensure installed and in dynamic library search path"
NO_HIP = "UNAVAILABLE; HIP runtime library not available"


@pytest.mark.parametrize(
    ("driver", "printed", "advice", "detail"),
    [
        ("vulkan", NO_LOADER, "install the Vulkan loader and a", "NOT_FOUND: Vulkan loader library not found"),
        ("cuda", NO_CUDA, "install the NVIDIA driver", f"UNAVAILABLE: {LIBCUDA}"),
        ("hip", NO_HIP, "install AMD's ROCm runtime", NO_HIP.replace(";", ":")),
        ("metal", "", "run iree-run-module --list_devices=metal and see what it says", ""),
    ],
)
def test_advice_fits_the_reason(driver: str, printed: str, advice: str, detail: str, script_tool: ScriptTool) -> None:
    printed = f"\033[31mFLAGS ERROR: (oops)\033[0m\nc/runtime/src/iree/hal/drivers/x.c:641: {printed}"
    probe = probe_driver(script_tool(f"cat >&2 <<'END'\n{printed}\nEND\nexit 1"), driver, limits=LIMITS)
    title = {"vulkan": "Vulkan", "metal": "metal"}.get(driver, driver.upper())
    assert (probe.devices, probe.reason, probe.detail) == ((), f"no {title} device", detail)
    assert str(probe.advice).startswith(advice)


HANGS = "look into the system's CUDA driver: it ends or hangs when it is asked for its devices"


@pytest.mark.parametrize(
    ("commands", "reason", "advice"),
    [
        ("exit 0", "no CUDA device", "check that nvidia-smi lists a GPU here"),
        ("sleep 60", "the search for CUDA devices ran past its limit of 2 s", HANGS),
        (None, "iree-run-module cannot be started: No such file or directory", "install iree-base-runtime again"),
    ],
    ids=["lists nothing", "hangs", "is not there"],
)
def test_a_tool_that_finds_nothing(commands: str | None, reason: str, advice: str, script_tool: ScriptTool) -> None:
    toolchain = script_tool(commands or "")
    if commands is None:
        toolchain.runtime_tool("iree-run-module").unlink()
    found = probe_driver(toolchain, "cuda", limits=Limits(seconds=2))
    assert found == DeviceProbe(driver="cuda", reason=reason, advice=advice)


VULKAN = """\
# ===----------------------------------------------------------------------===
# --device=vulkan://GPU-6d65
#   llvmpipe (LLVM 15.0.6, 256 bits) (llvmpipe Mesa 22.3.6 (LLVM 15.0.6))
# ===----------------------------------------------------------------------===
name: llvmpipe (LLVM 15.0.6, 256 bits)
api: 1.3.230
type: cpu
driver_info: Mesa 22.3.6 (LLVM 15.0.6)
memory_heaps: 1
  [0] size=2147483648 flags=0x00000001
"""
CUDA = (
    "# --device=cuda://GPU-a\n#   NVIDIA H200\n# ===\n- gpu-compute-capability: 9.0\n- driver-max-cuda-version: 12.8\n"
)
HIP = "# --device=hip://GPU-1\n#   AMD Instinct MI300X\n# ===\n- gpu-arch-name: gfx942\n- gpu-warp-size: 64\n"


def test_fields_of_dumped_devices() -> None:
    (llvmpipe,) = parse_dump(VULKAN)
    assert llvmpipe == DeviceInfo(
        uri="vulkan://GPU-6d65",
        name="llvmpipe (LLVM 15.0.6, 256 bits)",
        driver_version="Mesa 22.3.6 (LLVM 15.0.6)",
        api="Vulkan 1.3.230",
        kind="cpu",
    )
    assert llvmpipe.is_software
    assert parse_dump(HIP) == [DeviceInfo(uri="hip://GPU-1", name="AMD Instinct MI300X", api="gfx942")]
    (h200,) = parse_dump(CUDA)
    assert (h200.name, h200.driver_version, h200.api) == ("NVIDIA H200", "CUDA 12.8", "compute capability 9.0")


def test_devices_keep_the_order_of_the_list_and_need_no_names(script_tool: ScriptTool) -> None:
    commands = f"case $1 in\n--list*) echo cuda://GPU-b; echo cuda://GPU-a;;\n*) cat <<'END'\n{CUDA}END\nesac"
    found = probe_driver(script_tool(commands), "cuda", limits=LIMITS).devices
    assert [(device.uri, device.name) for device in found] == [("cuda://GPU-b", ""), ("cuda://GPU-a", "NVIDIA H200")]


LAVAPIPE, SWIFTSHADER = VULKAN_DRIVERS["lavapipe"], VULKAN_DRIVERS["swiftshader"]


@pytest.fixture(autouse=True)
def no_drivers_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.delenv(variable, raising=False)


def written(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("{}")
    return folder


def test_a_manifest_is_found_by_its_drivers_name_and_this_machines_architecture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = written(tmp_path / "near", "intel_icd.x86_64.json", "vk_swiftshader_icd.json", "lvp_icd.json")
    far = written(tmp_path / "far", "lvp_icd.json")
    assert find_manifest(SWIFTSHADER, [tmp_path / "nowhere", near, far]) == near / "vk_swiftshader_icd.json"
    assert find_manifest(LAVAPIPE, [tmp_path / "nowhere", near, far]) == near / "lvp_icd.json", "in the first folder"
    several = written(tmp_path / "several", "lvp_icd.aarch64.json", "lvp_icd.x86_64.json")
    for machine, name in (("AMD64", "lvp_icd.x86_64.json"), ("arm64", "lvp_icd.aarch64.json")):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        assert find_manifest(LAVAPIPE, [several]) == several / name
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert find_manifest(LAVAPIPE, [several]) is None


def test_what_the_users_own_variable_names_comes_first_and_all_loaders_are_shown_it(
    real_toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, own = (written(tmp_path / name, "vk_swiftshader_icd.json") for name in ("system", "own"))
    manifest = own / "vk_swiftshader_icd.json"
    monkeypatch.setenv("VK_DRIVER_FILES", f"/gone/intel_icd.json:{manifest}")
    assert find_manifest(SWIFTSHADER, [system]) == manifest
    assert environment_for(SWIFTSHADER) == {"VK_DRIVER_FILES": str(manifest), "VK_ICD_FILENAMES": str(manifest)}
    monkeypatch.setattr("harness.toolchain.devices.find_manifest", lambda _: None)
    found = probe_vulkan_driver(real_toolchain, SWIFTSHADER, limits=LIMITS)
    assert (found.reason, found.advice) == ("the Vulkan driver SwiftShader is not here", SWIFTSHADER.install)


@pytest.mark.vulkan
@pytest.mark.parametrize(("name", "word"), [("lavapipe", "llvmpipe"), ("swiftshader", "SwiftShader")])
def test_only_the_drivers_own_devices_are_seen(real_toolchain: Toolchain, name: str, word: str) -> None:
    driver = VULKAN_DRIVERS[name]
    if find_manifest(driver) is None:
        pytest.skip(f"{driver.title} is not here; {driver.install}")
    found = probe_vulkan_driver(real_toolchain, driver, limits=LIMITS)
    assert found.reason is None
    assert all(word in device.name and device.is_software for device in found.devices)
    assert all(device.api.startswith("Vulkan 1.") for device in found.devices)
