"""[Case] -> [Build]."""

from harness.compile.build import MODULE_FILE, BuildCache, CompileRequest, cache_key
from harness.compile.pool import compile_cases

__all__ = ["MODULE_FILE", "BuildCache", "CompileRequest", "cache_key", "compile_cases"]
