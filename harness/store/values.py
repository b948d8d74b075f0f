"""What the commands on a results folder say, a value for each line of their tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "unfinished", "damaged", "changed", "future schema", "not a run"]
Fate = Literal["copied", "already there", "left out", "refused"]

# What is wrong with a folder, as opposed to what is merely no finished run.
WRONG: frozenset[State] = frozenset({"damaged", "changed", "future schema"})


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a look at one folder, or at one file of the compacted history, showed.

    Attributes:
        kind: `run`, `comparison` or `history`; "" for what is none of these.
        state: `damaged`: it cannot be read as what it says it is. `changed`: it can, but is not what it was when it was
            finished.
        why: One sentence that names the file; a remark where it is ok.
        hashed: Whether every file was held against the hash that was written when it was finished.
    """

    name: str
    kind: str
    state: State
    why: str = ""
    hashed: bool = False


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one folder in a merge.

    Attributes:
        source: The place it is from.
        why: Why it was left out or refused; a remark where it was copied.
    """

    name: str
    source: str
    fate: Fate
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Compacted:
    """What compacting did.

    Attributes:
        runs: Ids that were added.
        comparisons: Likewise.
        left_out: Folders that were not, and why.
        merged_parts: How many parts became one; 0: they were left as they are.
        folder_bytes: Of the folders whose runs and comparisons are in Parquet now.
        before_bytes: Of all Parquet files before.
        after_bytes: Of all Parquet files now.
        parts: How many parts there are now.
    """

    runs: tuple[str, ...]
    comparisons: tuple[str, ...]
    left_out: dict[str, str]
    merged_parts: int
    folder_bytes: int
    before_bytes: int
    after_bytes: int
    parts: int


@dataclass(frozen=True, kw_only=True)
class Dropping:
    """What became, or would become, of one run's or comparison's raw turns.

    Attributes:
        started: As the run itself says, ISO 8601 in UTC.
        dropped: Whether they go; else `why` says why they stay.
        bytes: Of rounds.jsonl.
    """

    name: str
    started: str
    dropped: bool
    bytes: int = 0
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class GarbageReport:
    """What `harness results gc` did, or would do.

    Attributes:
        rows: Runs and comparisons that are old and have turns, and those whose age is not known.
        history_bytes: By which the Parquet files shrank; of a dry run about what they would.
        young: How many more have turns and are younger than what was asked for.
    """

    rows: tuple[Dropping, ...]
    history_bytes: int
    dry_run: bool
    young: int = 0
