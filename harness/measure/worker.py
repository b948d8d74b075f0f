"""A resident process that holds the modules of one group and runs timed turns when told to.

It runs by path under a toolchain's own Python, where the harness may not be installed: stdlib, numpy and iree.runtime
only, and counters.py and account.py beside it. It speaks JSON lines: one request on stdin, one answer on stdout.

    {"op": "open", "uris": [...], "flags": [...], "cpus": [...],
     "marker": file}                                                  devices, flags, cores; first of all
    {"op": "load", "case": ..., "module": ..., "function": ...,
     "arguments": [...], "parameters": {scope: file},
     "shares_context": true}                                          hold one module with its inputs; maybe in one
                                                                      context with others of the same file
    {"op": "calibrate", "case": ..., "target_ns": ...}                warm up; calls that fill a turn
    {"op": "warm", "case": ..., "calls": ...}                         warm up with so many calls
    {"op": "round", "turns": [[case, calls], ...], "warm": {case: calls}}
                                                                      timed turns, in this order, each of these cases
                                                                      after so many calls that are not timed
    {"op": "outputs", "case": ..., "folder": ...}                     call it once more, and write what it gives into
                                                                      output0.npy, output1.npy, ...
    {"op": "quit"}

An answer is {"ok": true, ...} or {"ok": false, "error": "one line"}. A turn times `calls` synchronous calls of the
entry function (on every driver the call returns when its results are there) between two reads of a monotonic clock.
Workers of other engines (harness.peers.worker) speak the same protocol, and are built on `Turns` and `serve`.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

# How many calls tell how long one takes: at least so many, and as many as fill so many turns. Fewer let the case that
# is loaded first, on cold caches, look slow, and give it turns of fewer calls than its equals.
_CALIBRATION_CALLS = 3
_CALIBRATION_TARGETS = 10
_MOST_CALIBRATION_CALLS = 1000
_NEVER_NS = 2**63
_MOST_CALLS = 1_000_000
_LONGEST_ERROR = 2000
# Blocks of the heap, of random size, that are held before anything is loaded. Where a buffer of the heap begins within
# a page follows from all that was allocated before, the length of the interpreter's path too, and is the same in every
# process of an installation: one of two equal runtimes looked a third slower (docs/statistics.md). So each process
# begins elsewhere. Blocks below 128 KiB are of the heap in glibc, and those beyond 64 KiB fit in few gaps.
_BLOCK, _BLOCKS = 65_536, 4
# The one device whose work is done by the thread that calls, so that its clock and counters see all of it.
ON_CALLING_THREAD = "local-sync"


class Callee(Protocol):
    """What is timed."""

    def call(self, calls: int) -> int:
        """Time a batch of calls; nanoseconds."""

    def results(self) -> list[Any]:
        """Call once, untimed; the results as numpy arrays."""


class Loaded:
    """One module in a context, with its arguments on the device."""

    def __init__(self, session: Session, request: dict[str, Any]) -> None:
        rt = session.runtime
        self.context, module = session.context(request)
        self.function = module.lookup_function(request["function"])
        if self.function is None:
            raise ValueError(f"no function {request['function']!r} in the module")
        self.arguments = rt.VmVariantList(len(request["arguments"]))
        self._keep = [session.put(argument) for argument in request["arguments"]]
        self._fetch = session.fetch
        for value in self._keep:
            if isinstance(value, float):
                self.arguments.push_float(value)
            elif isinstance(value, int):
                self.arguments.push_int(int(value))
            else:
                self.arguments.push_ref(value)
        self._new_results = rt.VmVariantList

    def call(self, calls: int) -> int:
        """Time a batch of calls; nanoseconds."""
        invoke, function, arguments, new_results = self.context.invoke, self.function, self.arguments, self._new_results
        started = time.perf_counter_ns()
        for _ in range(calls):
            invoke(function, arguments, new_results(1))
        return time.perf_counter_ns() - started

    def results(self) -> list[Any]:
        """Call once, untimed; the results as numpy arrays."""
        results = self._new_results(1)
        self.context.invoke(self.function, self.arguments, results)
        return [self._fetch(results, position) for position in range(len(results))]


def _beside(file: str) -> dict[str, Any]:
    """What a file beside this one defines; it cannot be imported where this one runs by path."""
    return runpy.run_path(str(Path(__file__).with_name(file)))


class Turns:
    """This process, held on its cores, with its counters and what it holds to be called in turns."""

    def __init__(self, request: dict[str, Any], *, on_calling_thread: bool) -> None:
        if request["cpus"] and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, request["cpus"])
        # Counters follow only threads that start after them, so they come before any engine.
        self.counters = _beside("counters.py")["Counters"]()
        self.account = _beside("account.py")["Account"](on_calling_thread=on_calling_thread)
        self.cases: dict[str, Callee] = {}
        self._shift = [bytes(_BLOCK + 16 * int.from_bytes(os.urandom(1), "big")) for _ in range(_BLOCKS)]
        self._marker = os.open(request["marker"], os.O_WRONLY)

    def mark(self, case: str) -> None:
        """Leave the name of the case at work where the harness finds it if this process dies."""
        os.ftruncate(self._marker, 0)
        os.pwrite(self._marker, case.encode(), 0)

    def calibrate(self, request: dict[str, Any]) -> dict[str, Any]:
        """Warm a case up, and find how many calls take about `target_ns`."""
        self.mark(request["case"])
        case = self.cases[request["case"]]
        first_ns = case.call(1)
        per_call = first_ns
        if first_ns < 100 * request["target_ns"]:  # a call that takes long is warm enough after one
            per_call = self._fastest(case, _CALIBRATION_TARGETS * request["target_ns"])
        calls = 1
        while calls * per_call < request["target_ns"] and calls < _MOST_CALLS:
            calls = min(max(calls + 1, -(-request["target_ns"] // max(per_call, 1))), _MOST_CALLS)
            per_call = case.call(calls) // calls
        return {"calls": calls, "per_call_ns": per_call}

    def warm(self, request: dict[str, Any]) -> dict[str, Any]:
        """Warm a case up whose turns are known."""
        self.mark(request["case"])
        self.cases[request["case"]].call(request["calls"])
        return {}

    def _fastest(self, case: Callee, enough_ns: int) -> int:
        """The shortest of calls that take so long together: the first ones after loading may be far slower."""
        spent_ns, calls, fastest = 0, 0, _NEVER_NS
        while calls < _CALIBRATION_CALLS or (spent_ns < enough_ns and calls < _MOST_CALIBRATION_CALLS):
            took_ns = case.call(1)
            spent_ns, calls, fastest = spent_ns + took_ns, calls + 1, min(fastest, took_ns)
        return fastest

    def round(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run timed turns in the given order."""
        started = time.time_ns()
        warm = request.get("warm", {})
        turns = []
        for name, calls in request["turns"]:
            self.mark(name)
            case = self.cases[name]
            if name in warm:
                case.call(warm[name])
            self.account.before()
            self.counters.start()
            self.account.start()
            wall_ns = case.call(calls)
            cpu_ns = self.account.stop()
            counted = self.counters.read()
            turns.append(
                {
                    "case": name,
                    "calls": calls,
                    "wall_ns": wall_ns,
                    "cpu_ns": cpu_ns,
                    "counters": counted,
                    "account": self.account.read(),
                }
            )
        return {"started_unix_ns": started, "turns": turns}

    def outputs(self, request: dict[str, Any]) -> dict[str, Any]:
        """Call a case once more and write what it gives."""
        import numpy as np

        self.mark(request["case"])
        arrays = self.cases[request["case"]].results()
        for position, array in enumerate(arrays):
            np.save(Path(request["folder"]) / f"output{position}.npy", array, allow_pickle=False)
        return {"outputs": len(arrays)}


class Session(Turns):
    """The devices and the modules on them."""

    def __init__(self, request: dict[str, Any]) -> None:
        import iree.runtime as rt  # before it is held on one core, which other workers wait for

        super().__init__(request, on_calling_thread=set(request["uris"]) == {ON_CALLING_THREAD})
        self.runtime = rt
        if request["flags"]:
            rt.flags.parse_flags(*request["flags"])
        # Not from the cache, which would give one device for two of the same URI.
        self.devices = [rt.get_device(uri, cache=False) for uri in request["uris"]]
        self.instance = rt.VmInstance()
        self.hal_module = rt.create_hal_module(self.instance, devices=self.devices)
        self.shared: dict[str, tuple[Any, Any]] = {}

    def put(self, argument: dict[str, Any]) -> Any:
        """Copy one argument, an .npy file or raw bytes, to the first device; a scalar is a number of Python."""
        import numpy as np

        rt = self.runtime
        if argument.get("scalar"):
            return np.load(argument["file"]).item()
        if argument.get("raw"):
            shape = tuple(argument["shape"])
            array = np.fromfile(argument["file"], dtype=np.uint16).reshape(shape)
            element_type = getattr(rt.HalElementType, argument["element_type"])
        else:
            array = np.load(argument["file"])
            element_type = rt.array_interop.map_dtype_to_element_type(array.dtype)
        device = self.devices[0]
        return device.allocator.allocate_buffer_copy(
            memory_type=int(rt.MemoryType.DEVICE_LOCAL),
            allowed_usage=int(rt.BufferUsage.DEFAULT),
            device=device,
            buffer=np.require(array, requirements="C"),  # np.ascontiguousarray would make a scalar a vector
            element_type=element_type,
        )

    def fetch(self, results: Any, position: int) -> Any:
        """Copy one result to the host."""
        import numpy as np

        rt = self.runtime
        if isinstance(results.get_variant(position), (int, float)):
            value = results.get_serialized_trace_value(position)  # {"type": "value", "f32": 1.5}
            ((element, number),) = ((key, value[key]) for key in value if key != "type")
            return np.asarray(number, dtype={"i": "int", "f": "float"}[element[0]] + element[1:])
        view = results.get_as_object(position, rt.HalBufferView)
        return rt.DeviceArray(self.devices[0], view).to_host().copy()

    def context(self, request: dict[str, Any]) -> tuple[Any, Any]:
        """A context with a module in it, a new one unless the request shares one that is there; and that module."""
        file = request["module"]
        if request.get("shares_context") and file in self.shared:
            return self.shared[file]
        rt, modules = self.runtime, [self.hal_module]
        providers = []
        for scope, weights in request["parameters"].items():
            index = rt.ParameterIndex()
            index.load(weights)
            providers.append(index.create_provider(scope=scope))
        if providers:
            modules.append(rt.create_io_parameters_module(self.instance, *providers))
        module = rt.VmModule.mmap(self.instance, file)
        made = rt.VmContext(self.instance, [*modules, module]), module
        if request.get("shares_context"):
            self.shared[file] = made
        return made

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Hold one module."""
        self.mark(request["case"])
        self.cases[request["case"]] = Loaded(self, request)
        return {}


def serve(start: Callable[[dict[str, Any]], Any]) -> None:
    """Answer requests until `quit` or the end of stdin; `start` makes the session, whose methods the other ops are."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever engines print goes to stderr; the protocol has stdout for itself
    session: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "quit":
            break
        try:
            if request["op"] == "open":
                session, answer = start(request), {}
            else:
                answer = getattr(session, request["op"])(request)
        except Exception as error:
            text = " ".join(str(error).split())[:_LONGEST_ERROR] or type(error).__name__
            channel.write(json.dumps({"ok": False, "error": text}) + "\n")
        else:
            channel.write(json.dumps({"ok": True, **answer}) + "\n")
    channel.flush()
    os._exit(0)  # tearing drivers down can hang or crash, and nothing is left to save


if __name__ == "__main__":
    serve(Session)
