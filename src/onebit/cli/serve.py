"""`onebit serve`, `onebit log` and `onebit key`: the decision service."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from onebit.cli.app import AsJson, app, fail

if TYPE_CHECKING:
    from onebit.serve.backup import BackupContent
    from onebit.serve.log import ServiceLog

T = TypeVar("T")

Data = Annotated[
    str,
    typer.Option(metavar="FOLDER", help="Use the logs, snapshots and keys in this folder."),
]
Database = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Use a PostgreSQL database instead of a folder: postgresql://user@host/name.",
        show_default=False,
    ),
]

log_app = typer.Typer(
    help="Verify, back up, restore and erase the logs of the service.",
    add_completion=False,
    rich_markup_mode=None,
)
key_app = typer.Typer(
    help="Add, list and remove API keys of the service.",
    add_completion=False,
    rich_markup_mode=None,
)
app.add_typer(log_app, name="log")
app.add_typer(key_app, name="key")


@app.command()
def serve(
    data: Data = "onebit-data",
    database: Database = None,
    host: Annotated[
        str,
        typer.Option(
            metavar="HOST", help="Listen at this address; one that others can reach needs a key."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Listen at this port.")
    ] = 8000,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PROXY",
            help="Trust a proxy at this address, network or host name; repeat it for more.",
            show_default=False,
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="Let pages of this origin, such as https://shop.example, ask; repeat it for more.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=64,
            help="Serve with this many processes; more than one needs --database.",
        ),
    ] = 1,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", help="Serve a model with simulated traffic, in a folder of its own."
        ),
    ] = False,
    log_requests: Annotated[
        bool,
        typer.Option("--log-requests", help="Log every request, not only what changes models."),
    ] = False,
    opentelemetry: Annotated[
        bool,
        typer.Option("--opentelemetry", help="Send traces by OTLP, as the variables OTEL_* say."),
    ] = False,
    most_body: Annotated[
        int, typer.Option(metavar="N", min=1024, help="Refuse requests of more bytes than this.")
    ] = 2**20,
    most_items: Annotated[
        int, typer.Option(metavar="N", min=1, help="Refuse requests with longer lists than this.")
    ] = 1000,
    most_features: Annotated[
        int, typer.Option(metavar="N", min=1, help="Refuse examples of more features than this.")
    ] = 10_000,
    most_labels: Annotated[
        int, typer.Option(metavar="N", min=2, help="Refuse models of more labels than this.")
    ] = 1000,
    memory: Annotated[
        int,
        typer.Option(
            metavar="MEGABYTES", min=1, help="Pack models that nobody uses beyond this much memory."
        ),
    ] = 1024,
    most_requests: Annotated[
        int, typer.Option(metavar="N", min=1, help="Refuse more requests at a time than this.")
    ] = 1000,
) -> None:
    """Serve models over HTTP, with a page about each of them."""
    _needs_serve()
    from onebit.serve.limits import Limits
    from onebit.serve.starting import import_running

    running = import_running()
    if workers > 1 and database is None:
        raise ValueError("a folder is for one process: --workers needs --database")
    limits = Limits(most_body, items=most_items, features=most_features, labels=most_labels)
    limits = limits._replace(in_flight=most_requests, memory=memory * 2**20)
    proxies, origins = tuple(trusted_proxy or ()), tuple(allow_origin or ())
    options = running.Options(
        data, database, host, port, workers, log_requests, limits, proxies, origins
    )._replace(opentelemetry=opentelemetry)
    if demo:
        from onebit.serve.demo import serve_demo

        serve_demo(options)
        return
    running.serve(options)


@log_app.command()
def verify(
    data: Data = "onebit-data",
    database: Database = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Verify only the log of this model.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Replay logs, and compare snapshots and decisions with them."""
    _needs_serve()
    from onebit.serve.verify import READ_AHEAD, Verdict
    from onebit.serve.verify import verify as replay

    async def work(log: ServiceLog) -> dict[str, tuple[Verdict, float]]:
        found = await log.models()
        if model is not None and model not in found:
            raise ValueError(f"no model {model!r}: there are {', '.join(found) or 'none'}")
        verdicts = {}
        for name, key in found.items():
            if model is None or name == model:
                start = time.perf_counter()
                verdict = await replay(log, key, _progress(name, as_json))
                verdicts[name] = verdict, time.perf_counter() - start
        return verdicts

    verdicts = _with_log(data, database, work, make=False)
    for name, (verdict, seconds) in verdicts.items():
        if as_json:
            print(json.dumps({"model": name, **verdict._asdict(), "seconds": round(seconds, 3)}))
            continue
        equal = f"{len(verdict.equal)} snapshots equal to the byte"
        print(
            f"{name}: {verdict.rows:,} rows, {equal}, {verdict.checked:,} decisions made again, "
            f"{seconds:.1f} s"
        )
        if verdict.versions:
            print(
                f"{name}: made by another version ({'; '.join(verdict.versions)}), and not "
                f"reproduced by this one: {verdict.other_snapshots:,} snapshots, "
                f"{verdict.other_decisions:,} decisions. That is no fault of the log"
            )
        if verdict.erased:
            print(
                f"{name}: {verdict.erased:,} decisions cannot be made again: the model had learned "
                "from rows that were erased since then"
            )
        if verdict.unchecked:
            print(
                f"{name}: {verdict.unchecked:,} decisions were not made again: the process that "
                f"made them was more than {READ_AHEAD:,} rows behind. None is expected"
            )
    faults = [f"{name}: {fault}" for name, (v, _) in verdicts.items() for fault in v.faults]
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        fail(faults[0] + more)


@log_app.command()
def erase(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Erase decisions of this model.")],
    id: Annotated[  # noqa: A002
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="Erase the decision of this id; repeat it for more.",
            show_default=False,
        ),
    ] = None,
    field: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Erase decisions whose record has this value in this field.",
            show_default=False,
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Erase decisions older than this, such as 90d.", show_default=False
        ),
    ] = None,
    data: Data = "onebit-data",
    database: Database = None,
) -> None:
    """Erase decisions with their feedback.

    A folder must not be in use: ask its service instead.
    """
    _needs_serve()
    from msgspec import UNSET

    from onebit.serve.api import Erasure, ErasureResult, RefusedError
    from onebit.serve.erasing import check, erase_from, matching

    name, is_given, value = (field or "").partition("=")
    if field is not None and not is_given:
        raise ValueError(f"--field takes a name and a value, user=17; got {field}")
    erasure = Erasure(
        id or UNSET,
        UNSET if field is None else name,
        UNSET if field is None else value,
        UNSET if older_than is None else time.time() - _seconds(older_than, "--older-than"),
    )
    try:
        check(erasure)
    except RefusedError:
        raise ValueError("give one of --id, --field and --older-than") from None

    async def work(log: ServiceLog) -> ErasureResult:
        found = await log.models()
        if model not in found:
            raise ValueError(f"no model {model!r}: there are {', '.join(found) or 'none'}")
        decisions = await matching(log, found[model], erasure)
        result = await erase_from(log, found[model], decisions)
        await log.clean()
        return result

    result = _with_log(data, database, work, make=False, alone=True)
    print(f"{model}: {result.decisions:,} decisions erased, {result.rows:,} rows")


@log_app.command()
def backup(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Make the backup here.")],
    data: Data = "onebit-data",
    database: Database = None,
) -> None:
    """Back up logs, snapshots and keys to a new folder."""

    async def work() -> BackupContent:
        if database is None:
            from onebit.serve.backup import back_up_folder

            return back_up_folder(data, target)
        from onebit.serve.postgres_backup import back_up_database

        return await back_up_database(database, target)

    _show_backup(target, _run(work))


@log_app.command()
def restore(
    source: Annotated[str, typer.Argument(metavar="BACKUP", help="Restore this backup.")],
    data: Data = "onebit-data",
    database: Database = None,
) -> None:
    """Restore a backup to a new folder or an empty database."""

    async def work() -> BackupContent:
        if database is None:
            from onebit.serve.backup import restore_folder

            return restore_folder(source, data)
        from onebit.serve.postgres_backup import restore_database

        return await restore_database(source, database)

    _show_backup(data if database is None else "the database", _run(work))


def _show_backup(place: str, content: BackupContent) -> None:
    print(
        f"{place}: {content.models:,} models, {content.rows:,} rows, {content.snapshots:,} "
        "snapshots"
    )


@key_app.command()
def add(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Give the key this name, to know it by.")
    ],
    scopes: Annotated[
        str,
        typer.Option(
            metavar="SCOPES",
            help="Allow these of decide, feedback, read and admin, separated by commas.",
        ),
    ] = "decide,feedback",
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Allow only requests to this model; repeat it for more.",
            show_default=False,
        ),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Expire the key after this time, such as 90d, 12h or 30m.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Allow this many requests a second, to each process; items of a list count.",
            show_default=False,
        ),
    ] = None,
    data: Data = "onebit-data",
    database: Database = None,
) -> None:
    """Make an API key, and print it: it cannot be read again."""
    _needs_serve()
    from onebit.serve.keys import make_key

    wanted = [scope.strip() for scope in scopes.split(",") if scope.strip()]
    until = None if expires is None else time.time() + _seconds(expires)
    print(
        _with_log(
            data,
            database,
            lambda log: make_key(log, name, wanted, models=model or (), expires=until, rate=rate),
        )
    )


@key_app.command("list")
def list_keys(data: Data = "onebit-data", database: Database = None) -> None:
    """List the API keys by name, and what they are limited to."""
    for key in _with_log(data, database, lambda log: log.keys(), make=False):
        limits = [f"models {key.models}"] if key.models else []
        if key.expires is not None:
            verb = "expires" if key.expires > time.time() else "expired"
            date = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(key.expires))
            limits.append(f"{verb} {date}")
        if key.rate is not None:
            limits.append(f"{key.rate:g} requests a second")
        print("; ".join([f"{key.name}: {key.scopes}", *limits]))


@key_app.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Remove the key that has this name.")],
    data: Data = "onebit-data",
    database: Database = None,
) -> None:
    """Remove an API key; within seconds it is refused."""
    if not _with_log(data, database, lambda log: log.remove_key(name), make=False):
        raise ValueError(f"there is no key {name!r}")


def _seconds(duration: str, option: str = "--expires") -> float:
    """Return the seconds of a duration such as 90d, 12h or 30m."""
    units = {"d": 86_400.0, "h": 3600.0, "m": 60.0}
    number, unit = duration[:-1], duration[-1:]
    if unit not in units or not number.isdecimal() or not 0 < int(number) < 100_000:
        raise ValueError(f"{option} takes a number of days, hours or minutes, 90d; got {duration}")
    return int(number) * units[unit]


def _with_log(
    data: str,
    database: str | None,
    work: Callable[[ServiceLog], Awaitable[T]],
    *,
    make: bool = True,
    alone: bool = False,
) -> T:
    async def run() -> T:
        from onebit.serve.running import open_log

        log = open_log(data, database, alone=alone, make=make)
        await log.open()
        try:
            return await work(log)
        finally:
            await log.close()

    return _run(run)


def _run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do work with a log; its errors are blamed on what was given."""
    _needs_serve()
    from onebit.serve.log import LogError

    try:
        return asyncio.run(work())
    except LogError as error:
        raise ValueError(str(error)) from None


def _progress(name: str, hidden: bool) -> Callable[[int], None]:
    if hidden or not sys.stderr.isatty():
        return lambda n: None
    return lambda n: print(f"\r{name}: {n:,} rows", end="\r", file=sys.stderr)


def _needs_serve() -> None:
    try:
        import msgspec as _msgspec  # noqa: F401
        import prometheus_client as _prometheus  # noqa: F401
        import uvicorn as _uvicorn  # noqa: F401
    except ModuleNotFoundError as missing:
        sys.exit(f"the service needs {missing.name}: pip install 'onebit[serve]'")
