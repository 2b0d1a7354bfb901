"""API keys: texts that are shown once, and of which only a digest is kept."""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import get_args

from onebit.serve.log import Key, Log
from onebit.serve.paths import Scope

SCOPES: tuple[str, ...] = get_args(Scope)


async def make_key(log: Log, name: str, scopes: list[str]) -> str:
    """Add a key with these scopes, and return it: nobody can read it again."""
    for scope in scopes:
        if scope not in SCOPES:
            raise ValueError(f"no scope {scope!r}: there are {', '.join(SCOPES)}")
    if not scopes:
        raise ValueError(f"a key has at least one scope: {', '.join(SCOPES)}")
    # Of 256 random bits, a plain digest is enough: there is nothing to guess.
    key = f"onebit_{secrets.token_urlsafe(32)}"
    await log.add_key(Key(name, digest_of(key), ",".join(sorted(set(scopes))), time.time()))
    return key


def digest_of(key: str) -> str:
    """Return what is kept of a key."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


class Keyring:
    """The keys there are; without any, everybody may do everything, from this machine only."""

    def __init__(self, keys: list[Key]) -> None:
        self._scopes = {key.digest: frozenset(key.scopes.split(",")) for key in keys}

    def __bool__(self) -> bool:
        return bool(self._scopes)

    def scopes_of(self, key: str) -> frozenset[str]:
        """Return what a key allows; nothing, if it is none of these."""
        # Whoever measures how long this takes learns of digests, and no key from them.
        return self._scopes.get(digest_of(key), frozenset())
