"""API keys: shown once; only a digest is stored."""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import Literal, get_args

from onebit.serve.log import Key, Log

Scope = Literal["decide", "feedback", "read", "admin"]
SCOPES: tuple[str, ...] = get_args(Scope)


async def make_key(log: Log, name: str, scopes: list[str]) -> str:
    """Add a key with these scopes, and return it: nobody can read it again."""
    for scope in scopes:
        if scope not in SCOPES:
            raise ValueError(f"no scope {scope!r}: there are {', '.join(SCOPES)}")
    if not scopes:
        raise ValueError(f"a key has at least one scope: {', '.join(SCOPES)}")
    # For 256 random bits a plain digest is enough, as they cannot be guessed.
    key = f"onebit_{secrets.token_urlsafe(32)}"
    await log.add_key(Key(name, digest_of(key), ",".join(sorted(set(scopes))), time.time()))
    return key


def digest_of(key: str) -> str:
    """Return the digest of a key, which is stored."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


class Keyring:
    """The existing keys; without any, everything is allowed, but only from the local machine."""

    def __init__(self, keys: list[Key]) -> None:
        self._scopes = {key.digest: frozenset(key.scopes.split(",")) for key in keys}

    def __bool__(self) -> bool:
        return bool(self._scopes)

    def scopes_of(self, key: str) -> frozenset[str]:
        """Return the scopes of a key; none if it is unknown."""
        # Timing this may reveal digests, but not the keys.
        return self._scopes.get(digest_of(key), frozenset())
