"""Follow docs/start.md as a new user does, with a wheel alone, and print how long each part takes.

    python tools/start_check.py WHEEL [--python PATH]

There is one virtual environment, with an empty home, an empty working folder and no cache of pip.
The commands and the Python code of the page are run in their order, as they stand there; only
`onebit` in `pip install` is the wheel, and the service listens at a port that is free.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from release_check import README, Place, free_port, read

PAGE = Path(__file__).parents[1] / "docs" / "start.md"


class User:
    """Someone who follows the page in a clean environment."""

    def __init__(self, place: Place, wheel: Path) -> None:
        self._place, self._wheel, self._port = place, wheel, str(free_port())
        self._services: list[subprocess.Popen[bytes]] = []
        self._session = ""
        path = f"{place.bin}:{place.environment['PATH']}"
        place.environment |= {"PATH": path, "PIP_NO_CACHE_DIR": "1"}

    def type(self, line: str) -> None:
        """Run one command of a shell block."""
        words = shlex.split(line.replace("8000", self._port))
        if words[:2] == ["pip", "install"]:
            extras = words[2].removeprefix("onebit")
            self._place.install(f"{self._wheel}{extras}", "--no-cache-dir")
        elif words[:2] == ["onebit", "serve"]:
            options = {"cwd": self._place.work, "env": self._place.environment}
            command = [str(self._place.bin / "onebit"), *words[1:], "--port", self._port]
            self._services.append(subprocess.Popen(command, **options))  # type: ignore[call-overload]
            read(f"http://127.0.0.1:{self._port}/")
        else:
            self._place.run(*words)

    def program(self, text: str) -> None:
        """Run a block of Python after those before it; it must print what the page says."""
        path = self._place.work / "session.md"
        self._session += text
        path.write_text(self._session)
        self._place.run(self._place.python, "-I", "-c", README, str(path))

    def open_page(self) -> None:
        """Open the page of the service, and look at the model."""
        page = read(f"http://127.0.0.1:{self._port}/")
        model = read(f"http://127.0.0.1:{self._port}/v1/models/desks")
        if b"<html" not in page or b'"right":1' not in model.replace(b" ", b""):
            sys.exit("the service has no page, or has not learned")

    def leave(self) -> None:
        """Stop the service."""
        for service in self._services:
            service.terminate()
            service.wait(60)


def main() -> None:
    """Follow the page, and print the time of each part."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", default=sys.executable, metavar="PATH")
    options = parser.parse_args()
    sections = PAGE.read_text().split("\n## ")[1:]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        start = time.monotonic()
        user = User(Place(options.python, Path(name)), options.wheel.resolve())
        print(f"an empty environment: {time.monotonic() - start:.0f} s", flush=True)
        try:
            for section in sections:
                blocks = re.findall(r"^```(sh|python)\n(.*?)^```$", section, re.M | re.S)
                title, total = section.partition("\n")[0], 0.0
                for kind, text in blocks:
                    start = time.monotonic()
                    if kind == "python":
                        user.program(text)
                    commands = text.replace("\\\n", "").splitlines() if kind == "sh" else ()
                    for line in commands:
                        user.type(line)
                    seconds = time.monotonic() - start
                    total += seconds
                    print(f"    {seconds:5.0f} s  {text.partition(chr(10))[0][:80]}", flush=True)
                if "onebit serve" in section:
                    user.open_page()
                if blocks:
                    print(f"{title}: {total:.0f} s", flush=True)
        finally:
            user.leave()


if __name__ == "__main__":
    main()
