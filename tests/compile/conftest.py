"""Requests to compile, with the parts that a test is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.compile import BuildCache, CompileRequest
from harness.plugins import Applied
from harness.process import Limits
from harness.toolchain import Toolchain
from tests.builders import make_case
from tests.fakes.fake_toolchain import make_fake_toolchain

MakeRequest = Callable[..., CompileRequest]

_LIMITS = Limits(seconds=60)


@pytest.fixture
def fake(tmp_path: Path) -> Toolchain:
    return make_fake_toolchain(tmp_path / "toolchain")


@pytest.fixture
def cache(tmp_path: Path) -> BuildCache:
    return BuildCache(tmp_path / "cache")


@pytest.fixture
def make_request(tmp_path: Path, fake: Toolchain) -> MakeRequest:
    """Requests to the fake compiler, as in `make_request("--fake-exit=1", variant="broken")`."""

    def make(
        *flags: str,
        variant: str = "stock",
        device: str = "cpu",
        text: str = "module {}",
        model_sha256: str = "00" * 32,
        function: str = "main",
        host_cpu: str = "a processor",
        plugins: Sequence[Applied] = (),
        limits: Limits = _LIMITS,
        toolchain: Toolchain = fake,
    ) -> CompileRequest:
        model = tmp_path / "models" / f"{model_sha256}.mlir"
        model.parent.mkdir(exist_ok=True)
        model.write_text(text)
        return CompileRequest(
            case=make_case(variant, device=device, compile_flags=flags),
            toolchain=toolchain,
            model=model,
            model_sha256=model_sha256,
            function=function,
            host_cpu=host_cpu,
            limits=limits,
            plugins=tuple(plugins),
        )

    return make
