"""A worker that times nothing: it speaks the worker's protocol and answers from a script.

The script is $FAKE_WORKER, or else the first of the `uris` of the `open` request, as JSON:
{"log": file to append each request to, "per_call_ns": {case: ns}, "refuse_load": [cases], "refuse_open": "...",
 "die_in_round": {case: round number}, "die_at_load": [cases], "hang_in_round": case,
 "die_at_open": {flags: how many workers}, "round_s": seconds that each round really takes}
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Answer until quit."""
    script: dict[str, Any] = {}
    rounds = 0
    marker = ""
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "open":
            script, marker = json.loads(os.environ.get("FAKE_WORKER") or request["uris"][0]), request["marker"]
        with Path(script["log"]).open("a") as log:
            log.write(json.dumps({"pid": os.getpid(), **request}) + "\n")
        answer: dict[str, Any] = {"ok": True}
        if request["op"] == "quit":
            return
        if request["op"] == "open" and "refuse_open" in script:
            answer = {"ok": False, "error": script["refuse_open"]}
        elif request["op"] == "open":
            opened = [json.loads(line) for line in Path(script["log"]).read_text().splitlines()]
            like_this = [other for other in opened if other["op"] == "open" and other["flags"] == request["flags"]]
            if len(like_this) <= script.get("die_at_open", {}).get(" ".join(request["flags"]), 0):
                os.abort()
        elif request["op"] == "load":
            _mark(marker, request["case"])
            if request["case"] in script.get("die_at_load", []):
                sys.stderr.write("free(): invalid pointer\n")
                sys.stderr.flush()
                os.abort()
            if request["case"] in script.get("refuse_load", []):
                answer = {"ok": False, "error": "module not for this device"}
        elif request["op"] == "outputs":
            answer = {"ok": False, "error": "a worker that computes nothing has no outputs"}
        elif request["op"] == "calibrate":
            per_call = script["per_call_ns"].get(request["case"], 1_000_000)
            answer |= {"calls": max(1, request["target_ns"] // per_call), "per_call_ns": per_call}
        elif request["op"] == "round":
            answer |= {"started_unix_ns": time.time_ns(), "turns": []}
            time.sleep(script.get("round_s", 0.0))
            for case, calls in request["turns"]:
                _mark(marker, case)
                if script.get("die_in_round", {}).get(case) == rounds:
                    os.abort()
                if script.get("hang_in_round") == case:
                    time.sleep(3600)
                wall = calls * script["per_call_ns"].get(case, 1_000_000)
                turn = {"case": case, "calls": calls, "wall_ns": wall, "cpu_ns": wall, "counters": {"instructions": 7}}
                turn["account"] = {"on_calling_thread": True, "thread_ns": wall, "voluntary": 0}
                answer["turns"].append(turn)
            rounds += 1
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _mark(marker: str, case: str) -> None:
    Path(marker).write_text(case)


if __name__ == "__main__":
    main()
