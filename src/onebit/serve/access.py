"""Who may send a request: holders of keys, or this machine where there never was a key."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from onebit.core.validation import short
from onebit.serve.api import RefusedError
from onebit.serve.keys import Keyring
from onebit.serve.log import Key
from onebit.serve.requests import Request

if TYPE_CHECKING:
    from onebit.serve.routes import Route

_LOCAL_HOST = re.compile(rb"(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?", re.IGNORECASE)

_FORWARDED_FOR = b"x-forwarded-for"
_OF_PROXIES = frozenset((b"forwarded", _FORWARDED_FOR, b"x-forwarded-host", b"x-real-ip", b"via"))
"""Headers by which a proxy says that a request comes from elsewhere."""


class Access:
    """Refuses requests that are not allowed.

    With keys, a request needs one. Without keys, only this machine is answered: the address of the
    connection is a loopback address, the request names this machine as its host, and no proxy has
    passed it on. A service that is exposed to others, or that had a key since it started, never
    opens in this way: without keys it answers nobody.

    Parameters
    ----------
    exposed : bool, default=False
        Whether others can reach the service.
    proxies : iterable of str, optional
        Addresses or networks of proxies. From their connections, the header ``X-Forwarded-For``
        says where a request comes from.
    """

    def __init__(self, *, exposed: bool = False, proxies: Iterable[str] = ()) -> None:
        self._keys, self._open = Keyring([]), not exposed
        self._proxies = networks_of(proxies)

    def update(self, keys: list[Key]) -> None:
        """Replace the keys; once there was one, the service stays closed to those without."""
        self._keys = Keyring(keys)
        self._open = self._open and not keys

    def check(self, route: Route, request: Request) -> None:
        """Refuse a request that is not allowed."""
        if route.probe:  # whoever runs the service must see that it lives
            return
        headers = request.head.headers
        if self._keys:
            if route.scope is not None:
                self._check_key(route.scope, headers)
        elif not self._open:
            raise RefusedError(403, "there is no key: onebit key add makes one")
        else:
            self._check_local(self.client_of(request.peer, headers), headers)

    def client_of(self, peer: str | None, headers: Mapping[bytes, bytes]) -> str | None:
        """Return the address that a request comes from; None if nobody trustworthy says it.

        The last address that is not of a trusted proxy itself; others can be invented.
        """
        if peer is None or not _is_in(peer, self._proxies):
            return peer if _OF_PROXIES.isdisjoint(headers) else None
        said = headers.get(_FORWARDED_FOR, b"").decode("latin-1")
        addresses = [address.strip() for address in said.split(",") if address.strip()]
        while addresses and _is_in(addresses[-1], self._proxies):
            addresses.pop()
        return addresses[-1] if addresses else peer

    def _check_key(self, scope: str, headers: Mapping[bytes, bytes]) -> None:
        kind, _, key = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        scopes = self._keys.scopes_of(key) if kind.lower() == "bearer" else frozenset()
        if not scopes:
            challenge = {"www-authenticate": "Bearer"}
            raise RefusedError(401, "a key is needed: Authorization: Bearer ...", challenge)
        if scope not in scopes and "admin" not in scopes:
            raise RefusedError(403, f"this key does not allow {scope}")

    @staticmethod
    def _check_local(client: str | None, headers: Mapping[bytes, bytes]) -> None:
        if client is None or not _is_loopback(client):
            given = "a request that a proxy passed on" if client is None else short(client)
            raise RefusedError(403, f"without keys, only this machine is answered; not {given}")
        # A foreign web page must not reach the service through its user's browser.
        host = headers.get(b"host", b"")
        if not _is_local(host):
            given = host.decode("latin-1")
            raise RefusedError(
                403, f"without keys, only this machine is answered; not {given!r:.80}"
            )
        origin = headers.get(b"origin", b"")
        if origin and origin.partition(b"://")[2] != host:
            given = origin.decode("latin-1")
            raise RefusedError(403, f"without keys, no other page is answered; not {given!r:.80}")


_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks_of(addresses: Iterable[str]) -> tuple[_Network, ...]:
    """Return addresses and networks, parsed; raise ValueError for one that is neither."""
    try:
        return tuple(ipaddress.ip_network(address) for address in addresses)
    except ValueError as error:
        raise ValueError(f"a proxy is named by its address or network: {error}") from None


def is_loopback_host(host: str) -> bool:
    """Return whether only the local machine reaches a host."""
    return host.lower() == "localhost" or _is_loopback(host)


@lru_cache(maxsize=1024)
def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    # A socket for both kinds of addresses shows those of IPv4 in the form of IPv6.
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return found if mapped is None else mapped


@lru_cache(maxsize=1024)
def _is_loopback(text: str) -> bool:
    address = _address(text)
    return address is not None and address.is_loopback


def _is_in(text: str, networks: tuple[_Network, ...]) -> bool:
    if not networks:
        return False
    address = _address(text)
    return address is not None and any(address in network for network in networks)


@lru_cache(maxsize=256)
def _is_local(host: bytes) -> bool:
    return _LOCAL_HOST.fullmatch(host) is not None
