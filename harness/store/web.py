"""Pages that list folders, read up to a size: a server may send one that never ends, and it is held in memory."""

from __future__ import annotations

from typing import Any

from harness.errors import RunError

# A hundred thousand links of a hundred bytes, several times over.
PAGE_LIMIT_BYTES = 64 * 2**20
_CHUNK_BYTES = 2**20


def web_options(place: str) -> dict[str, Any]:
    """What fsspec's file system of http is opened with; nothing for another one.

    Raises:
        ImportError: What reads http is not installed.
    """
    if not place.startswith(("http://", "https://")):
        return {}
    from aiohttp import ClientResponse

    class Bounded(ClientResponse):
        async def text(self, encoding: str | None = None, errors: str = "strict") -> str:
            """All of a page, as fsspec asks for those that list folders."""
            page = bytearray()
            async for chunk in self.content.iter_chunked(_CHUNK_BYTES):
                page += chunk
                if len(page) > PAGE_LIMIT_BYTES:
                    raise RunError(f"{self.url}: lists more than {PAGE_LIMIT_BYTES / 2**20:g} MiB; look at what it is")
            return page.decode(encoding or self.charset or "utf-8", errors)

    return {"client_kwargs": {"response_class": Bounded}}
