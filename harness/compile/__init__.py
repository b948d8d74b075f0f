"""[Case] -> [Build]."""

from harness.compile.build import BuildCache, Underway, compile_cases
from harness.compile.iree_compile import MODULE_FILE, CompileRequest, cache_key

__all__ = ["MODULE_FILE", "BuildCache", "CompileRequest", "Underway", "cache_key", "compile_cases"]
