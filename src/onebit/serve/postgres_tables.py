"""The tables in PostgreSQL, their migrations, and the statements that write rows one by one."""

from __future__ import annotations

from onebit.serve.postgres_appender import COLUMNS

VERSION = 4
"""Version of the tables below; a database of a later version is refused."""

IS_ONCE, AMENDS = "kind <> 'revision'", "kind IN ('revision', 'erasure')"
"""Conditions of the two indexes of ids below; an index is used if a query has its condition."""

_INDEXES = f"""
CREATE UNIQUE INDEX log_ids ON onebit.log (model, id, kind) WHERE id IS NOT NULL AND {IS_ONCE};
CREATE INDEX log_amendments ON onebit.log (model, id) WHERE {AMENDS};
"""

_NO_SAMPLES = """
ALTER TABLE onebit.log ALTER COLUMN body SET STATISTICS 0, ALTER COLUMN id SET STATISTICS 0;
"""
"""The statistics of the planner would have samples of what is erased."""

TABLES = f"""
CREATE SCHEMA onebit;
CREATE TABLE onebit.version (version INT NOT NULL);
CREATE TABLE onebit.model (
    key BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    name TEXT UNIQUE,
    rows BIGINT NOT NULL
);
CREATE TABLE onebit.log (
    model BIGINT NOT NULL,
    n BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C",
    at DOUBLE PRECISION NOT NULL,
    body TEXT NOT NULL,
    code BIGINT,
    PRIMARY KEY (model, n)
);
{_INDEXES}
{_NO_SAMPLES}
CREATE TABLE onebit.snapshot (
    model BIGINT NOT NULL,
    n BIGINT NOT NULL,
    meta BYTEA NOT NULL,
    names TEXT[] NOT NULL,
    learners BYTEA[] NOT NULL,
    digest TEXT NOT NULL,
    code BIGINT,
    PRIMARY KEY (model, n)
);
CREATE TABLE onebit.code (
    key BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    name TEXT NOT NULL UNIQUE
);
CREATE TABLE onebit.key (
    name TEXT PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    models TEXT NOT NULL DEFAULT '',
    expires DOUBLE PRECISION,
    rate DOUBLE PRECISION
);
"""

MIGRATIONS = {
    1: """
ALTER TABLE onebit.log ADD COLUMN code BIGINT;
ALTER TABLE onebit.snapshot ADD COLUMN code BIGINT;
CREATE TABLE onebit.code (
    key BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    name TEXT NOT NULL UNIQUE
);
""",
    2: """
ALTER TABLE onebit.key ADD COLUMN models TEXT NOT NULL DEFAULT '';
ALTER TABLE onebit.key ADD COLUMN expires DOUBLE PRECISION;
ALTER TABLE onebit.key ADD COLUMN rate DOUBLE PRECISION;
""",
    3: f"DROP INDEX onebit.log_ids; {_INDEXES} {_NO_SAMPLES}",
}
"""What makes the tables of the next version from those of each earlier one.

Processes of the earlier version may continue to write: what they write is accepted as before.
"""

ERASED = "kind = 'erased', id = NULL, body = '{}'"
"""What an erased row becomes."""

LOCK_MODELS = "SELECT 1 FROM onebit.model WHERE key = ANY(%s) ORDER BY key FOR UPDATE"

_GIVEN = """
SELECT * FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::float8[], %s::text[])
WITH ORDINALITY AS given (model, kind, id, at, body, i)
"""

# A separate statement after the locking one, so that it sees what others wrote until then.
INSERT = f"""
WITH given AS ({_GIVEN}), fresh AS (
    SELECT given.*, model.rows + row_number() OVER (PARTITION BY model ORDER BY i) AS n
    FROM given JOIN onebit.model ON model.key = given.model
    WHERE given.id IS NULL OR NOT EXISTS (
        SELECT 1 FROM onebit.log
        WHERE log.model = given.model AND log.id = given.id AND log.kind = given.kind
        AND log.{IS_ONCE}
    ) AND NOT EXISTS (
        SELECT 1 FROM onebit.log
        WHERE log.model = given.model AND log.id = given.id AND log.kind = given.kind
        AND log.at = given.at AND log.body = given.body AND log.{AMENDS}
    )
), written AS (
    INSERT INTO onebit.log ({COLUMNS}) SELECT model, n, kind, id, at, body, %s FROM fresh
), counted AS (
    UPDATE onebit.model SET rows = rows + more.n
    FROM (SELECT model, count(*) AS n FROM fresh GROUP BY model) AS more
    WHERE key = more.model
)
SELECT i, n FROM fresh
"""

FIND = f"""
WITH given AS ({_GIVEN})
SELECT i, n FROM given JOIN onebit.log USING (model, kind, id, at, body) WHERE log.{IS_ONCE}
UNION ALL
SELECT i, n FROM given JOIN onebit.log USING (model, kind, id, at, body) WHERE log.{AMENDS}
"""
