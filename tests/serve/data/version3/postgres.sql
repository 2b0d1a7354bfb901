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
CREATE UNIQUE INDEX log_ids ON onebit.log (model, id, kind) WHERE id IS NOT NULL;
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
INSERT INTO onebit.version VALUES (3);
INSERT INTO onebit.model (name, rows) VALUES ('numbers', 15);
