"""Parameters of connections to PostgreSQL; tests/serve/test_postgres.py has those with a server."""

import asyncio

import pytest
from psycopg import AsyncConnection

from onebit.serve.postgres_connection import STATEMENT_SECONDS, connect


class NotConnectedError(Exception):
    """In place of a connection."""


def parameters_for(url, monkeypatch):
    """Return the parameters that a connection to `url` is asked for with."""
    asked = {}

    async def refuse(conninfo, **options):
        asked.update(options, conninfo=conninfo)
        raise NotConnectedError

    async def ask():
        await connect(url, STATEMENT_SECONDS, asyncio.get_running_loop().time() + 10.0)

    monkeypatch.setattr(AsyncConnection, "connect", refuse)
    with pytest.raises(NotConnectedError):
        asyncio.run(ask())
    return asked


def test_a_machine_that_is_gone_is_noticed_within_the_time_of_a_statement(monkeypatch):
    asked = parameters_for("postgresql://127.0.0.1/models", monkeypatch)
    assert asked["connect_timeout"] < STATEMENT_SECONDS  # one answer is left to come after it
    assert asked["tcp_user_timeout"] == 1000 * STATEMENT_SECONDS
    silent = asked["keepalives_idle"] + asked["keepalives_interval"] * asked["keepalives_count"]
    assert silent == STATEMENT_SECONDS + 1.0
    assert asked["keepalives_count"] > 1  # one lost packet is no lost machine
    assert asked["autocommit"] is True


def test_what_the_url_says_is_kept(monkeypatch):
    url = "postgresql://127.0.0.1/models?connect_timeout=9&keepalives_count=7"
    asked = parameters_for(url, monkeypatch)
    assert asked["conninfo"] == url
    assert {"connect_timeout", "keepalives_count"}.isdisjoint(asked)
    assert "keepalives_idle" in asked
