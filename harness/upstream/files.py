"""Files that upstream's tests name by URL: from a table of local ones, from the cache, or from the network."""

import base64
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from harness.cache import cache_root, trim
from harness.scratch import scratch_folder
from harness.store.place import without_password
from harness.suite.toml_file import read_toml

# Seconds without a connection, and without a byte.
_TIMEOUT = (5.0, 30.0)
_LIMIT_BYTES = 20 * 2**30


class _Table(BaseModel):
    """By URL, a local file, relative to the table."""

    model_config = ConfigDict(extra="forbid")
    files: dict[str, str]


class Files:
    """Finds the file of a URL; a host that cannot be reached is asked once."""

    def __init__(self, table: Path | None, say: Callable[[str], None]) -> None:
        content = read_toml(table, _Table)[0].files if table is not None else {}
        self._local = {url: table.parent / file for url, file in content.items() if table is not None}
        self._say = say
        self._away: dict[str, str] = {}

    def get(self, url: str) -> Path | str:
        """The file of a URL, or why it cannot be had."""
        named = without_password(url)
        if url in self._local:
            file = self._local[url]
            return file if file.is_file() else f"{file}, which stands for {named}, is not there"
        host = ""
        try:
            parts = urlsplit(url)
            kept = cache_root() / "fetched" / hashlib.sha256(url.encode()).hexdigest()[:32] / Path(parts.path).name
            if kept.is_file():
                os.utime(kept)
                return kept
            host = parts.hostname or named
            return self._away.get(host) or self._fetched(url, kept)
        except (OSError, ValueError) as error:  # as those of requests are
            answer = getattr(error, "response", None)
            if answer is not None:
                return f"{named} answers {answer.status_code}"
            self._away[host] = f"{host or named} cannot be reached; give what it has with --files"
            return self._away[host]

    def _fetched(self, url: str, target: Path) -> Path | str:
        """The file as the server has it, once it is whole; its hash is held against the one that the server states."""
        import requests  # which takes a while

        self._say(f"Fetching {without_password(url)} ...")
        digest = hashlib.md5(usedforsecurity=False)  # what Azure's blob storage states
        target.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(target.parent, ".fetching-") as scratch:
            file = scratch / target.name
            with requests.get(url, stream=True, timeout=_TIMEOUT) as answer, file.open("wb") as written:
                answer.raise_for_status()
                for chunk in answer.iter_content(1 << 20):
                    digest.update(chunk)
                    written.write(chunk)
                stated = answer.headers.get("Content-MD5")
            if stated is not None and stated != base64.b64encode(digest.digest()).decode():
                return f"{without_password(url)} came damaged; try again"
            file.replace(target)
        trim((cache_root() / "fetched").glob("*/*"), _LIMIT_BYTES)
        return target
