"""API keys: shown once; only a digest is stored."""

from __future__ import annotations

import hashlib
import math
import secrets
import time
from collections.abc import Iterable
from typing import Literal, get_args

import msgspec

from onebit.core.validation import short
from onebit.serve.api import RefusedError
from onebit.serve.log import Key, ServiceLog
from onebit.serve.rows import Name

Scope = Literal["decide", "feedback", "read", "admin"]
SCOPES: tuple[str, ...] = get_args(Scope)

_CHALLENGE = {"www-authenticate": "Bearer"}


async def make_key(
    log: ServiceLog,
    name: str,
    scopes: list[str],
    *,
    models: Iterable[str] = (),
    expires: float | None = None,
    rate: float | None = None,
) -> str:
    """Add a key, and return it: it cannot be read again.

    Parameters
    ----------
    log : ServiceLog
    name : str
    scopes : list of str
    models : iterable of str, optional
        The models that it is for; by default all.
    expires : float, optional
        When it expires, in seconds since 1970; by default never.
    rate : float, optional
        Maximum number of requests a second, to each process; by default any number.
    """
    if not name.strip() or not name.isprintable():
        raise ValueError(f"the name of a key is printed in one line; got {short(name)}")
    for scope in scopes:
        if scope not in SCOPES:
            raise ValueError(f"no scope {scope!r}: there are {', '.join(SCOPES)}")
    if not scopes:
        raise ValueError(f"a key has at least one scope: {', '.join(SCOPES)}")
    names = sorted(set(models))
    for model in names:
        try:
            msgspec.convert(model, Name)
        except msgspec.ValidationError:
            raise ValueError(f"{model!r} cannot be the name of a model") from None
    if rate is not None and not 0.0 < rate < math.inf:
        raise ValueError(f"a rate is a positive number of requests a second; got {rate:g}")
    # For 256 random bits a plain digest is enough, as they cannot be guessed.
    key = f"onebit_{secrets.token_urlsafe(32)}"
    allowed = ",".join(sorted(set(scopes)))
    found = Key(name, digest_of(key), allowed, time.time(), ",".join(names), expires, rate)
    await log.add_key(found)
    return key


def digest_of(key: str) -> str:
    """Return the digest of a key, which is stored."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


class Grant:
    """What a key allows, and how much of its rate is used.

    A bucket fills at the rate up to what a second brings, and a request needs one from it. A list
    needs one per item, which may overdraw it: the next request then waits longer.

    Attributes
    ----------
    key : Key
    models : frozenset of str or None
        The models that it is for; None for all.
    """

    def __init__(self, key: Key) -> None:
        self.key = key
        self._scopes = frozenset(key.scopes.split(","))
        self.models = frozenset(key.models.split(",")) if key.models else None
        self._left, self._at = max(1.0, key.rate or 1.0), time.monotonic()

    def check_scope(self, scope: Scope) -> None:
        """Refuse what the key does not allow, or no longer."""
        if self.key.expires is not None and self.key.expires <= time.time():
            raise RefusedError(401, "this key has expired", _CHALLENGE)
        if scope not in self._scopes and "admin" not in self._scopes:
            raise RefusedError(403, f"this key does not allow {scope}")

    def check_model(self, model: str) -> None:
        """Refuse a model that the key is not for."""
        if self.models is not None and model not in self.models:
            raise RefusedError(403, "this key is for other models")

    def use(self, n: int = 1) -> None:
        """Count a request; refuse it if there were too many."""
        rate = self.key.rate
        if rate is None:
            return
        now = time.monotonic()
        self._left = min(max(1.0, rate), self._left + rate * (now - self._at))
        self._at = now
        if self._left < 1.0:
            seconds = math.ceil((1.0 - self._left) / rate)
            message = f"this key allows {rate:g} requests a second"
            raise RefusedError(429, message, {"retry-after": str(seconds)})
        self._left -= n

    def add_items(self, n: int) -> None:
        """Count the items of a request that was counted as one."""
        self._left -= n - 1


class Keyring:
    """The existing keys; without any, everything is allowed, but only from the local machine."""

    def __init__(self) -> None:
        self._grants: dict[str, Grant] = {}

    def __bool__(self) -> bool:
        return bool(self._grants)

    def update(self, keys: list[Key]) -> None:
        """Replace the keys; of those that stay as they are, what was used of their rate counts."""
        known = {grant.key: grant for grant in self._grants.values()}
        self._grants = {key.digest: known.get(key) or Grant(key) for key in keys}

    def grant_of(self, key: str) -> Grant:
        """Return what a key allows; refuse one that is unknown."""
        # Timing this may reveal digests, but not the keys.
        grant = self._grants.get(digest_of(key)) if key else None
        if grant is None:
            raise RefusedError(401, "a key is needed: Authorization: Bearer ...", _CHALLENGE)
        return grant
