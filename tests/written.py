"""Texts that tests compare whole with files beside them.

Where something is to change, ``ONEBIT_WRITE=1 pytest ...`` writes the files anew, in place of
comparing them: their diff shows what else has changed.
"""

import os
from difflib import unified_diff


def assert_as_written(lines, path):
    """Compare lines with those of a file."""
    found = [line.rstrip() for line in lines]
    if os.environ.get("ONEBIT_WRITE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(found) + "\n")
    expected = path.read_text().splitlines()
    different = "\n".join(unified_diff(expected, found, path.name, "found", lineterm="", n=0))
    if different:
        raise AssertionError(f"{different}\nIf it is to be so, ONEBIT_WRITE=1 writes {path} anew.")
