"""Which code makes decisions and learns: another version may do both differently."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from pathlib import Path

import numba
import numpy as np

import onebit

_ARITHMETIC = (
    *("core", "numerics", "learners", "features", "losses.py"),
    *("serve/replayable.py", "serve/model.py", "serve/statistics.py", "serve/estimates.py"),
    "serve/apprentice.py",
)
"""What the state of a model depends on, of this package."""


_SUFFIXES = (".py", ".safetensors")
"""Files that count: code, and tables that it reads.

Compiled code is made from these; by files in ``__pycache__`` it is found again.
"""


@cache
def this_code() -> str:
    """Return the version of onebit, and a fingerprint of all that its arithmetic depends on."""
    return f"onebit {onebit.__version__}, {fingerprint(Path(onebit.__file__).parent)}"


def fingerprint(root: Path) -> str:
    """Return a fingerprint of the package in a folder, the libraries and the kind of processor."""
    python = ".".join(platform.python_version_tuple()[:2])
    found = hashlib.sha256(
        f"{python} {np.__version__} {numba.__version__} {platform.machine()}".encode()
    )
    for place in map(root.joinpath, _ARITHMETIC):
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        for path in files:
            if path.suffix in _SUFFIXES and "__pycache__" not in path.parts:
                found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]
