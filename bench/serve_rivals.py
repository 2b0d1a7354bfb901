"""What `bench/serve_load.py` measures the service beside.

The bare endpoint parses what the service parses, with the same framework, and replies. The
do-it-yourself one is what is commonly written: FastAPI, a Vowpal Wabbit workspace behind a lock,
and a commit to SQLite for each request, as durable as the service's. The third is the service
itself, without its direct entry point.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

import msgspec

from onebit.serve.api import DecisionRequest, DecisionResult, Feedback, FeedbackResult

LABELS = [f"label{k}" for k in range(10)]


def bare() -> Any:
    """Return an ASGI application that parses and replies."""
    questions = msgspec.json.Decoder(DecisionRequest | list[DecisionRequest])
    feedback = msgspec.json.Decoder(Feedback | list[Feedback])
    encode, numbers = msgspec.json.Encoder().encode, itertools.count()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        message = await receive()
        content = message.get("body", b"")
        while message.get("more_body"):
            message = await receive()
            content += message.get("body", b"")
        body: Any = None
        reply: list[Any] = [None]
        if scope["path"].endswith("/decide"):
            body = questions.decode(content)
            many = body if isinstance(body, list) else [body]
            reply = [DecisionResult(f"{next(numbers):x}", LABELS[0], 0.5, 0.5) for _ in many]
        elif scope["path"].endswith("/feedback"):
            body = feedback.decode(content)
            many = body if isinstance(body, list) else [body]
            reply = [FeedbackResult(one.id, "accepted") for one in many]
        answer = encode(reply if isinstance(body, list) else reply[0])
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return app


def do_it_yourself(folder: str) -> Any:
    """Return a FastAPI application around a Vowpal Wabbit workspace, which writes to a folder."""
    from fastapi import FastAPI
    from vowpalwabbit import Workspace

    app, lock, numbers = FastAPI(), threading.Lock(), itertools.count()
    workspace = Workspace("--cb_explore_adf --squarecb --quiet --noconstant -b 18")
    Path(folder).mkdir()
    db = sqlite3.connect(f"{folder}/log", check_same_thread=False, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE decision (id TEXT PRIMARY KEY, record TEXT, label INT, p REAL)")
    db.execute("CREATE TABLE feedback (id TEXT PRIMARY KEY, correct INT)")

    def lines(record: dict[str, Any], label: int | None = None, cost: str = "") -> str:
        words = []
        for name, value in record.items():
            text = str(value).replace(" ", "_").replace(":", "_").replace("|", "_")
            words.append(f"{name}:{value}" if isinstance(value, float) else f"{name}={text}")
        rows = [f"shared |x {' '.join(words)}"]
        rows += [f"{cost if k == label else ''}|a {k}" for k in range(len(LABELS))]
        return "\n".join(rows)

    @app.post("/v1/models/m/decide")
    def decide(question: dict[str, Any]) -> dict[str, Any]:
        record, name = question["record"], f"{next(numbers):x}"
        with lock:
            p = workspace.predict(lines(record))
            label = max(range(len(p)), key=p.__getitem__)
            row = (name, json.dumps(record), label, p[label])
            db.execute("INSERT INTO decision VALUES (?, ?, ?, ?)", row)
        return {"id": name, "label": LABELS[label], "probability": p[label], "confidence": None}

    @app.post("/v1/models/m/feedback")
    def feedback(said: dict[str, Any]) -> dict[str, Any]:
        with lock:
            query = "SELECT record, label, p FROM decision WHERE id = ?"
            record, label, p = db.execute(query, (said["id"],)).fetchone()
            db.execute("INSERT INTO feedback VALUES (?, ?)", (said["id"], said["correct"]))
            cost = f"{label}:{-float(said['correct'])}:{p} "
            workspace.learn(lines(json.loads(record), label, cost))
        return {"id": said["id"], "status": "accepted"}

    return app


def main() -> None:
    """Serve one of them: ``serve_rivals.py bare|diy|asgi PORT FOLDER``."""
    import sys

    import uvicorn

    kind, port, folder = sys.argv[1:]
    if kind == "asgi":
        serve_by_asgi(int(port), folder)
        return
    app = bare() if kind == "bare" else do_it_yourself(folder)
    uvicorn.run(app, port=int(port), log_level="error", access_log=False)


def serve_by_asgi(port: int, folder: str) -> None:
    """Serve onebit itself, without its direct entry point."""
    import uvicorn

    from onebit.serve.limits import Limits
    from onebit.serve.running import Options, app_of

    app = app_of(Options(folder, None, "127.0.0.1", port, 1, False, Limits()))
    uvicorn.run(
        app, port=port, log_level="error", access_log=False, http="httptools", loop="uvloop"
    )


if __name__ == "__main__":
    main()
