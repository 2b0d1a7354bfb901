"""Replacing a file atomically."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from os import PathLike

from onebit.core.file_lock import CAN_LOCK, lock


def replace_file(path: str | PathLike[str], content: bytes) -> None:
    """Replace the file at `path` by one with this content, or raise OSError and change nothing.

    The mode of an existing file is kept, and if `path` is a link, its target is replaced. A process
    that is killed may leave a file named .onebit-*, which the next one that writes to the same path
    removes.
    """
    place = os.path.realpath(os.fsdecode(path))
    folder, name = os.path.split(place)
    prefix = f".onebit-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}-"
    try:
        before = _regular(place)
        _remove_leftovers(folder, prefix)
        temporary, descriptor = _new_file(folder, prefix, 0o666 if before is None else 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                if before is not None:
                    _copy_owner_and_mode(before, descriptor)
                os.fsync(descriptor)
                if CAN_LOCK:  # while it is locked
                    os.replace(temporary, place)
            if not CAN_LOCK:  # on Windows, an open file cannot be replaced
                os.replace(temporary, place)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        _sync_folder(folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), os.fsdecode(path)) from error


def _regular(place: str) -> os.stat_result | None:
    """Return the status of a regular file; None if there is none."""
    try:
        found = os.stat(place)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file, and not replaced")
    return found


def _new_file(folder: str, prefix: str, mode: int) -> tuple[str, int]:
    """Return the name and the descriptor of a new file, locked to show that it is in use."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        name = os.path.join(folder, prefix + secrets.token_hex(8))
        descriptor = os.open(name, flags, mode)
        if not CAN_LOCK:
            return name, descriptor
        lock(descriptor)
        if os.path.exists(name):
            return name, descriptor
        os.close(descriptor)  # another process removed it as a leftover before it was locked


def _remove_leftovers(folder: str, prefix: str) -> None:
    """Remove the files of processes that were killed."""
    for name in os.listdir(folder):
        if not name.startswith(prefix):
            continue
        leftover = os.path.join(folder, name)
        with contextlib.suppress(OSError):  # locked by a live process, or not ours
            descriptor = os.open(leftover, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0))
            try:
                if CAN_LOCK:
                    lock(descriptor, wait=False)
                    os.unlink(leftover)
            finally:
                os.close(descriptor)
            if not CAN_LOCK:
                os.unlink(leftover)


def _copy_owner_and_mode(before: os.stat_result, descriptor: int) -> None:
    if not hasattr(os, "fchown"):
        return
    now = os.fstat(descriptor)
    mode = stat.S_IMODE(before.st_mode)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(descriptor, before.st_uid, before.st_gid)
        except OSError:  # only root gives files away; a file that is now ours must not act as us
            mode &= 0o777
    os.fchmod(descriptor, mode)


def _sync_folder(folder: str) -> None:
    with contextlib.suppress(OSError):  # folders cannot be opened on Windows
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
