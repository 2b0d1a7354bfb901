"""Print the oldest versions that onebit's dependencies allow, one requirement a line.

`make oldest` installs them.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def floors(requirements: list[str]) -> list[str]:
    """Return each requirement with its lower bound as the version."""
    found = []
    for requirement in requirements:
        bound = re.fullmatch(r"([\w.-]+)>=([\d.]+)(,.*)?", requirement)
        if bound is None:
            sys.exit(f"pyproject.toml: {requirement!r} has no lower bound")
        found.append(f"{bound[1]}=={bound[2]}")
    return found


if __name__ == "__main__":
    project = tomllib.loads(PROJECT.read_text())["project"]
    print("\n".join(floors(project["dependencies"])))
