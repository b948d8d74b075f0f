"""Asking IREE's runtime which devices a driver finds on this machine, and why it finds none."""

import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import process
from harness.process import Limits
from harness.toolchain.find import Toolchain

# In the order of reports: what is always there first.
DRIVERS = ("local-sync", "local-task", "vulkan", "cuda", "hip")

# Drivers of the machine's own processor.
PROCESSORS = {
    "local-sync": "this CPU, on the thread that calls",
    "local-task": "this CPU, on a pool of threads",
}
_TITLES = {"vulkan": "Vulkan", "cuda": "CUDA", "hip": "HIP"}
_STATUS_LINE = re.compile(r"\b([A-Z][A-Z_]{4,}); (\S.*)")
_GENERIC_ADVICE = re.compile(r"[;:] (?:please )?ensure\b")
_DUMP_HEAD = re.compile(r"^# --device=(\S+)\n#\s+(.*)$", re.MULTILINE)
_DUMP_FIELD = re.compile(r"^(?:- )?([a-z][a-z-]*(?:_[a-z]+)*): (.+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class DeviceInfo:
    """One device as the runtime describes it; "" where it does not say."""

    uri: str  # What `--device=` takes
    name: str
    driver_version: str = ""  # The system driver behind it: `Mesa 22.3.6 (LLVM 15.0.6)`, `CUDA 12.8`
    api: str = ""  # What it can be asked to run: `Vulkan 1.3.230`, `compute capability 9.0`, `gfx942`
    kind: str = ""  # Vulkan's word for it: `discrete-gpu`, `integrated-gpu`, `cpu` (a software device), ..

    @property
    def facts(self) -> str:
        """`llvmpipe (LLVM 15.0.6, 256 bits), Vulkan 1.3.230, Mesa 22.3.6`, as far as they are known."""
        return ", ".join(fact for fact in (self.name or self.uri, self.api, self.driver_version) if fact)

    @property
    def is_software(self) -> bool:
        """Whether a GPU's interface is played by the CPU, so that times say nothing about any GPU."""
        return self.kind == "cpu"


@dataclass(frozen=True, kw_only=True)
class DeviceProbe:
    """What one driver offers here: devices, or the reason why there are none and how to get one."""

    driver: str
    devices: tuple[DeviceInfo, ...] = ()
    reason: str | None = None  # A short sentence, `no Vulkan device`; None where there are devices
    advice: str | None = None  # How to get one, a sentence that is an order
    detail: str = ""  # The runtime's own words, for those who must look further


def driver_of(uri: str) -> str:
    """The driver's name in a device URI: `vulkan` of `vulkan://GPU-6d65`."""
    return uri.split("://", 1)[0]


def probe_driver(
    toolchain: Toolchain, driver: str, *, limits: process.Limits, environment: Mapping[str, str] | None = None
) -> DeviceProbe:
    """Ask the toolchain's runtime for the devices of one driver; this processor's own are always there."""
    if driver in PROCESSORS:
        return DeviceProbe(driver=driver, devices=(DeviceInfo(uri=driver, name=PROCESSORS[driver]),))
    tool = str(toolchain.runtime_tool("iree-run-module"))
    try:
        listed = process.run([tool, f"--list_devices={driver}"], limits=limits, env=environment)
    except OSError as error:
        return DeviceProbe(
            driver=driver,
            reason=f"iree-run-module cannot be started: {error.strerror or error}",
            advice="install iree-base-runtime again",
        )
    uris = [line.strip() for line in listed.stdout.splitlines() if line.startswith(driver)]
    if not listed.ok or not uris:
        return _none_found(driver, listed, limits)
    # Names are a courtesy: where the second question fails, the devices are still there.
    dump = process.run([tool, f"--dump_devices={driver}"], limits=limits, env=environment).stdout
    described = {device.uri: device for device in parse_dump(dump)}
    return DeviceProbe(driver=driver, devices=tuple(described.get(uri, DeviceInfo(uri=uri, name="")) for uri in uris))


def parse_dump(text: str) -> list[DeviceInfo]:
    """Devices in what `--dump_devices` prints: one block of fields each, headed by `# --device=<uri>` and a name."""
    _, *parts = _DUMP_HEAD.split(text)
    devices = []
    for uri, title, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        fields = dict(_DUMP_FIELD.findall(body))
        devices.append(
            DeviceInfo(
                uri=uri,
                name=fields.get("name", title.strip()),
                driver_version=fields.get("driver_info") or _formatted(fields, "CUDA {}", "driver-max-cuda-version"),
                api=_formatted(fields, "Vulkan {}", "api")
                or _formatted(fields, "compute capability {}", "gpu-compute-capability")
                or fields.get("gpu-arch-name", ""),
                kind=fields.get("type", ""),
            )
        )
    return devices


def _formatted(fields: dict[str, str], form: str, name: str) -> str:
    return form.format(fields[name]) if name in fields else ""


def _none_found(driver: str, listed: process.Finished, limits: process.Limits) -> DeviceProbe:
    detail = _own_words(listed.stderr)
    title = _TITLES.get(driver, driver)
    if "no driver" in detail:
        reason = f"this IREE was built without its {title} driver"
        return DeviceProbe(driver=driver, reason=reason, advice="use a toolchain that has it", detail=detail)
    if listed.limit is not None or listed.returncode < 0:
        reason = f"the search for {title} devices {listed.how_it_ended(limits)}"
        advice = f"look into the system's {title} driver: it ends or hangs when it is asked for its devices"
        return DeviceProbe(driver=driver, reason=reason, advice=advice, detail=detail)
    library_missing = "not found" in detail or "not available" in detail
    fallback = f"run iree-run-module --list_devices={driver} and see what it says"
    advice = _ADVICE.get((driver, library_missing), fallback)
    return DeviceProbe(driver=driver, reason=f"no {title} device", advice=advice, detail=detail)


def _own_words(stderr: str) -> str:
    """The fact in the first status line of an error, without colours, source positions and generic advice."""
    status = _STATUS_LINE.search(stderr)
    if status is None:
        return ""
    code, sentence = status.groups()
    return f"{code}: {_GENERIC_ADVICE.split(sentence)[0].rstrip(': ')}"


# By driver, and by whether its library is missing.
_ADVICE = {
    ("vulkan", True): "install the Vulkan loader and a Vulkan driver; a software one will do "
    "(Debian: apt-get install libvulkan1 mesa-vulkan-drivers)",
    ("vulkan", False): "install a Vulkan driver; a software one will do (Debian: apt-get install mesa-vulkan-drivers)",
    ("cuda", True): "install the NVIDIA driver (libcuda)",
    ("cuda", False): "check that nvidia-smi lists a GPU here",
    ("hip", True): "install AMD's ROCm runtime (libamdhip64)",
    ("hip", False): "check that rocminfo lists a GPU here",
}


# Both say which manifests the loader reads: the first since 1.3.207, where it wins; the second before.
_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")

# Where loaders look (the system's, then what is installed by hand), and where browsers keep the driver they bring.
_FOLDERS = (
    "/usr/share/vulkan/icd.d",
    "/etc/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/usr/local/etc/vulkan/icd.d",
    "~/.local/share/vulkan/icd.d",
    "/usr/lib/chromium",
    "/usr/lib64/chromium-browser",
    "/usr/lib/chromium-browser",
    "/opt/google/chrome",
)
_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, kw_only=True)
class VulkanDriver:
    """A driver by the name under which suites know it."""

    name: str
    title: str  # What its makers call it
    manifest: str  # The name of its manifest's file, less the architecture that may follow and `.json`
    install: str  # How to get it, a sentence that is an order


VULKAN_DRIVERS = {
    driver.name: driver
    for driver in (
        VulkanDriver(
            name="lavapipe",
            title="Mesa's lavapipe",
            manifest="lvp_icd",
            install="install Mesa's Vulkan drivers (Debian: apt-get install mesa-vulkan-drivers)",
        ),
        VulkanDriver(
            name="swiftshader",
            title="SwiftShader",
            manifest="vk_swiftshader_icd",
            install="install Chromium, which brings it (Debian: apt-get install --no-install-recommends chromium)",
        ),
    )
}


def find_manifest(driver: VulkanDriver, folders: Sequence[str | Path] = _FOLDERS) -> Path | None:
    """The driver's manifest on this machine: one that the user's own variables name, else one in the known folders."""
    paths = [path for variable in _VARIABLES for path in os.environ.get(variable, "").split(os.pathsep)]
    named = [Path(path) for path in paths if path]
    listed = [file for folder in folders for file in sorted(Path(folder).expanduser().glob(f"{driver.manifest}*.json"))]
    machine = _ARCHITECTURES.get(platform.machine().lower(), platform.machine().lower())
    for wanted in (f"{driver.manifest}.{machine}.json", f"{driver.manifest}.json"):
        for file in (*named, *listed):
            if file.name == wanted and file.is_file():
                return file
    return None


def environment_for(driver: VulkanDriver) -> Mapping[str, str]:
    """Variables with which the Vulkan loader finds that driver and no other; {} where it is not on this machine."""
    manifest = find_manifest(driver)
    return {} if manifest is None else dict.fromkeys(_VARIABLES, str(manifest))


def probe_vulkan_driver(toolchain: Toolchain, driver: VulkanDriver, *, limits: Limits) -> DeviceProbe:
    """Ask the toolchain's runtime for that driver's devices."""
    environment = environment_for(driver)
    if not environment:
        reason = f"the Vulkan driver {driver.title} is not here"
        return DeviceProbe(driver="vulkan", reason=reason, advice=driver.install)
    return probe_driver(toolchain, "vulkan", limits=limits, environment=environment)
