"""Lines of text files, compressed or not, with errors that name the file and the line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}

LONGEST_LINE = 2**26
"""Longest line, in bytes: some million features. A longer one would only fill the memory."""


def format_of(path: Path) -> str:
    """Return the extension of a file name, in lower case, without that of compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix not in _OPENERS), "")


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file; one whose name ends in .gz, .bz2 or .xz is decompressed."""
    n_lines = 0
    with _OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
        while True:
            try:
                line = file.readline(LONGEST_LINE)
            except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
                raise ValueError(
                    f"{path}:{n_lines + 1}: cannot be decompressed: {error}"
                ) from error
            if not line:
                return
            n_lines += 1
            if len(line) == LONGEST_LINE:
                raise ValueError(
                    f"{path}:{n_lines}: the line is longer than {LONGEST_LINE:,} bytes"
                )
            yield line


def texts_of(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, without a byte order mark."""
    for number, line in enumerate(lines_of(path), start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}:{number}: not UTF-8: byte {line[error.start]:#04x} at {error.start + 1}; "
                "save the file as UTF-8"
            ) from None
        if "\0" in text:  # at the end of a label, NumPy would drop it
            raise ValueError(f"{path}:{number}: not a text: byte 0x00 at {line.index(0) + 1}")
        yield text
