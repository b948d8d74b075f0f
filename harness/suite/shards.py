"""`--shard 2/8`: the models of a suite that one of several machines runs, without anything between the machines.

A hash of its name decides which shard a model is in, so that a suite that grows moves none of the others. All of a
model stays together: its cases are measured against each other, and its devices are checked against the first one.
"""

import hashlib
import re
from dataclasses import dataclass

from harness.errors import UsageError
from harness.records.case import Case
from harness.text import shown


@dataclass(frozen=True, kw_only=True)
class Shard:
    """One of `count` parts of a plan, `number` being from 1."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def has(self, case: Case) -> bool:
        """Whether a case is in it."""
        digest = hashlib.sha256(case.model.encode(errors="surrogatepass")).digest()
        return int.from_bytes(digest, "big") % self.count + 1 == self.number


def parse_shard(text: str) -> Shard:
    """`2/8`, the second of eight."""
    match = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text.strip())
    shard = Shard(number=int(match[1]), count=int(match[2])) if match is not None else None
    if shard is None or not 1 <= shard.number <= shard.count:
        raise UsageError(
            f"--shard {shown(text)}: is no shard; write its number and how many there are, as in 2/8, from 1/8 to 8/8"
        )
    return shard
