"""Texts that tests compare whole with files beside them.

Where something is to change, ``ONEBIT_WRITE=1 pytest ...`` writes the files anew, in place of
comparing them: their diff shows what else has changed.
"""

import os


def assert_as_written(lines, path):
    """Compare lines with those of a file."""
    lines = [line.rstrip() for line in lines]
    if os.environ.get("ONEBIT_WRITE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
    assert lines == path.read_text().splitlines()
