"""Copies of onebit, for tests that edit it or look at what it has compiled."""

import shutil
from pathlib import Path

import onebit


def copy_package(folder):
    """Copy onebit into a folder, with its bytecode and without machine code.

    To make the bytecode again would take as long as most of what tests do with a copy. It is that
    of the copied files, as long as nobody edits them: copies keep the times of the originals.
    """
    shutil.copytree(Path(onebit.__file__).parent, folder / "onebit", ignore=_machine_code)


def _machine_code(folder, names):
    if Path(folder).name == "__pycache__":
        return [name for name in names if not name.endswith(".pyc")]
    return {"machine_code"}.intersection(names)
