"""Compiled code on disk, under names that depend on everything it is made from.

A function's code is in a folder ``<name>-<digest>``, one file for each signature and processor. The
digest covers the function's fingerprint (`onebit.core.fingerprint`) and the versions of Python,
NumPy, Numba and onebit's own linker, so outdated code cannot be found. The folder is in the first
of `roots()` that is writable; folders that no process has used for 30 days are deleted.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import numba
import numpy as np

from onebit.core.fingerprint import digest
from onebit.core.replacing import replace_file

_UNUSED_DAYS = 30
"""Code that no process has loaded for this number of days is deleted."""

VERSIONS = f"Python {sys.version}, NumPy {np.__version__}, Numba {numba.__version__}"


def roots() -> Iterator[Path]:
    """Yield the folders that may have compiled code, the preferred one first."""
    if "NUMBA_CACHE_DIR" in os.environ:
        yield Path(os.environ["NUMBA_CACHE_DIR"]) / "onebit"
    yield Path(__file__).parent / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    yield Path(home) / "onebit"


def writable_root() -> Path | None:
    """Return the folder that compiled code is written to; None if none is writable."""
    for root in roots():
        with suppress(OSError):
            root.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=root).close()
            return root
    return None


def folders(name: str, fingerprint: str, linker: str) -> list[Path]:
    """Return the folders that may have a function's code; `linker` identifies how it is linked."""
    folder = f"{name}-{digest(fingerprint, VERSIONS, linker)}"
    return [root / folder for root in roots()]


def stored(folders: list[Path], file: str) -> Iterator[bytes]:
    """Yield the content of `file` from each folder that has it; reading marks it as used."""
    for folder in folders:
        try:
            content = (folder / file).read_bytes()
        except OSError:
            continue
        with suppress(OSError):
            os.utime(folder)
        yield content


def store(folders: list[Path], file: str, content: bytes) -> Path | None:
    """Write `file` to the first writable folder, and return its path."""
    for folder in folders:
        with suppress(OSError):
            if (folder / file).exists() and (folder / file).read_bytes() == content:
                os.utime(folder)  # it is in use
                return folder / file
            _drop_unused(folder.parent)
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(folder / file, content)
            return folder / file
    return None


@cache
def _drop_unused(root: Path) -> None:
    """Delete unused folders of any version of onebit, once per process."""
    oldest = time.time() - _UNUSED_DAYS * 24 * 3600
    for folder in root.glob("*-" + 16 * "[0-9a-f]"):
        with suppress(OSError):
            if folder.is_dir() and folder.stat().st_mtime < oldest:
                shutil.rmtree(folder)
