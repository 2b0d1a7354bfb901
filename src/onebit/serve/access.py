"""Who may send a request: holders of keys, or this machine where there never was a key."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import socket
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from onebit.core.validation import short
from onebit.serve.api import RefusedError
from onebit.serve.keys import Grant, Keyring
from onebit.serve.log import Key
from onebit.serve.requests import Request

if TYPE_CHECKING:
    from onebit.serve.routes import Route

_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
_ADDRESS = re.compile(r"[0-9.]+")
"""Matches numeric addresses, which are not host names."""

_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?")

_LOCAL_HOST = re.compile(rb"(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?", re.IGNORECASE)

SUBSCRIPTION_KEY = b"ocp-apim-subscription-key"

_FORWARDED_FOR = b"x-forwarded-for"
_OF_PROXIES = frozenset((b"forwarded", _FORWARDED_FOR, b"x-forwarded-host", b"x-real-ip", b"via"))
"""Headers by which a proxy says that a request comes from elsewhere."""

_logger = logging.getLogger(__name__)


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
    origins : iterable of bytes, optional
        Origins of pages elsewhere that browsers may let ask.
    proxies : iterable of str, optional
        Addresses, networks or host names of proxies. From their connections, the header
        ``X-Forwarded-For`` says where a request comes from.
    """

    def __init__(
        self,
        *,
        exposed: bool = False,
        proxies: Iterable[str] = (),
        origins: Iterable[bytes] = (),
    ) -> None:
        self._keys, self._open = Keyring(), not exposed
        self._origins = frozenset(origins)
        self._networks, self._hosts = parse_proxies(proxies)
        self._resolved: dict[str, tuple[_Network, ...]] = {}
        """Addresses of the proxies that are given by their host names."""

    async def resolve_proxies(self) -> None:
        """Look up the addresses of proxies; of a host that is not found, the last ones count."""
        loop = asyncio.get_running_loop()
        for host in self._hosts:
            try:
                found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except OSError as error:
                _logger.error("the proxy %s is not found: %s", host, error)
                continue
            # An address of IPv6 may have a zone.
            addresses = {str(one[4][0]).partition("%")[0] for one in found}
            self._resolved[host] = tuple(map(ipaddress.ip_network, sorted(addresses)))

    def update(self, keys: list[Key]) -> None:
        """Replace the keys; once there was one, the service stays closed to those without."""
        self._keys.update(keys)
        self._open = self._open and not keys

    def check(self, route: Route, request: Request) -> None:
        """Refuse a request that is not allowed; remember what its key allows."""
        if route.probe:  # probes must see that the process runs
            return
        headers = request.head.headers
        if self._keys:
            if route.scope is not None:
                request.grant = self._granted(route, request)
                request.grant.use()
        elif not self._open:
            raise RefusedError(403, "there is no key: onebit key add makes one")
        else:
            self._check_local(self.client_of(request.peer, headers), headers)

    def allowed_origin(self, headers: Mapping[bytes, bytes]) -> bytes | None:
        """Return the origin of the page that asks, if pages of that origin may."""
        origin = headers.get(b"origin")
        return origin if origin in self._origins else None

    def client_of(self, peer: str | None, headers: Mapping[bytes, bytes]) -> str | None:
        """Return the address that a request comes from; None if no trusted proxy names it.

        The last address that is not of a trusted proxy itself; others can be invented.
        """
        if peer is None or not self._is_proxy(peer):
            return peer if _OF_PROXIES.isdisjoint(headers) else None
        header = headers.get(_FORWARDED_FOR, b"").decode("latin-1")
        addresses = [address.strip() for address in header.split(",") if address.strip()]
        while addresses and self._is_proxy(addresses[-1]):
            addresses.pop()
        return addresses[-1] if addresses else peer

    def _granted(self, route: Route, request: Request) -> Grant:
        """Return what the key of a request allows; refuse what it does not."""
        headers = request.head.headers
        kind, _, key = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if not kind:  # as clients of Personalizer send it
            kind, key = "bearer", headers.get(SUBSCRIPTION_KEY, b"").decode("latin-1")
        grant = self._keys.grant_of(key if kind.lower() == "bearer" else "")
        if route.scope is not None:
            grant.check_scope(route.scope)
        if "model" in request.parameters:
            grant.check_model(request.parameters["model"])
        elif grant.models is not None and not route.keeps_to_models:
            raise RefusedError(403, "this key is for some models, not for the whole service")
        return grant

    def _is_proxy(self, address: str) -> bool:
        if not self._networks and not self._resolved:
            return False
        return _is_in(address, self._networks + tuple(chain(*self._resolved.values())))

    def _check_local(self, client: str | None, headers: Mapping[bytes, bytes]) -> None:
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
        if origin and origin not in self._origins and origin.partition(b"://")[2] != host:
            given = origin.decode("latin-1")
            raise RefusedError(403, f"without keys, no other page is answered; not {given!r:.80}")


_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def parse_proxies(proxies: Iterable[str]) -> tuple[tuple[_Network, ...], tuple[str, ...]]:
    """Return the networks and the host names among proxies; raise ValueError for anything else."""
    networks, hosts = [], []
    for proxy in proxies:
        try:
            networks.append(ipaddress.ip_network(proxy))
        except ValueError as error:
            if not _HOST_NAME.fullmatch(proxy) or _ADDRESS.fullmatch(proxy):
                given = f"a proxy is given by its address, network or host name: {error}"
                raise ValueError(given) from None
            hosts.append(proxy)
    return tuple(networks), tuple(hosts)


def parse_origins(origins: Iterable[str]) -> tuple[bytes, ...]:
    """Return origins as browsers send them; raise ValueError for anything else."""
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise ValueError(
                f"an origin is a scheme and a host, without a path; got {origin!r:.80}"
            )
    return tuple(origin.encode() for origin in origins)


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
