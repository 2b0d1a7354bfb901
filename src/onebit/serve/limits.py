"""How much a request may ask for."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """Limits of the service; requests beyond them are answered with 4xx."""

    body: int = 2**20
    """Bytes of a body."""
    imported: int = 2**30
    """Bytes of a log that is imported."""
    items: int = 1000
    """Decisions or feedback in one request."""
    features: int = 10_000
    """Features of an example that are not zero."""
    labels: int = 1000
    """Labels of a model, retired ones included."""
    models: int = 1000
    memory: int = 2**30
    """Bytes of the learners of models in use; those of the others are packed."""
    in_flight: int = 1000
    """Requests that are being answered."""
    seconds: float = 20.0
    """Until the head of a request is there, and until its body is; of a log that is imported, the
    longest pause, see `stream_body`."""
