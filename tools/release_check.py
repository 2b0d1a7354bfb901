"""Build a wheel and a source distribution, and try both in clean environments.

    python tools/release_check.py [--python PATH ...] [--keep FOLDER]

For each Python at hand that onebit supports: a virtual environment, an empty home, an empty working
folder; the wheel alone, and the examples of README; then its extras, the command line and the
service. The source distribution is installed with the first Python. Wheels with machine code are
made and tried by `make wheel`; those here are pure.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")

README = """
import doctest, sys
found = doctest.testfile(sys.argv[1], module_relative=False)
print(f"README: {found.attempted} examples, {found.failed} failed")
sys.exit(bool(found.failed or not found.attempted))
"""

SMOKE = """
import sys
import onebit
from onebit import Decision, OneBitClassifier, SOBA, load, play, streams

assert "site-packages" in onebit.__file__, onebit.__file__
assert onebit.__version__ == sys.argv[1], onebit.__version__
X, y = streams.synsep(500, seed=0)
for learner in (OneBitClassifier(random_state=0), SOBA(random_state=0)):
    history = play(learner, X, y)
    assert history.rounds == 500
    learner.save("model.safetensors")
    assert (load("model.safetensors").predict(X) == learner.predict(X)).all()
decision = learner.decide(X[:1], id="one")
learner.learn(Decision.from_dict(decision.to_dict()), correct=True)
assert learner.has_learned("one")
print(f"smoke: {onebit.__version__}, {history.n_mistakes} mistakes in {history.rounds} rounds")
"""


class Place:
    """A virtual environment with an empty home and working folder."""

    def __init__(self, python: str, folder: Path) -> None:
        self.home, self.work = folder / "home", folder / "work"
        for path in (self.home, self.work):
            path.mkdir(parents=True)
        run([python, "-m", "venv", str(folder / "venv")])
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self.python = str(self.bin / "python")
        kept = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "LANG")
        self.environment = {name: os.environ[name] for name in kept if name in os.environ}
        self.environment |= {"HOME": str(self.home), "USERPROFILE": str(self.home)}
        self.environment |= {"ONEBIT_PROGRESS": "0", "MPLBACKEND": "Agg"}

    def install(self, requirement: str, *options: str) -> None:
        """Install as a user would; pip keeps its own settings and, by default, its cache."""
        command = [self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        run([*command, *options, requirement])

    def run(self, *command: str) -> str:
        """Run a command in the empty folder, with the empty home."""
        return run([*command], env=self.environment, cwd=self.work)

    def program(self, text: str, *arguments: str) -> None:
        """Run a program in isolated mode, and print what it prints."""
        print("   ", self.run(self.python, "-I", "-c", text, *arguments).strip(), flush=True)

    def serve(self) -> None:
        """Start a service, and read its page."""
        port = free_port()
        command = [str(self.bin / "onebit"), "serve", "--data", "models", "--port", str(port)]
        service = subprocess.Popen(
            command, env=self.environment, cwd=self.work, stdout=subprocess.DEVNULL
        )
        try:
            page = read(f"http://127.0.0.1:{port}/")
        finally:
            service.terminate()
            service.wait(60)
        if b"<html" not in page:
            sys.exit("the service has no page")
        print(f"    service: a page of {len(page):,} bytes", flush=True)


def run(command: list[str], **options: object) -> str:
    """Run a command, and exit with what it printed if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore
    if done.returncode:
        sys.exit(f"{' '.join(command)[:200]}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def read(address: str, seconds: float = 120.0) -> bytes:
    """Return what a service answers, once it does."""
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                return answer.read()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def pythons() -> list[str]:
    """Return the Pythons at hand that onebit supports, this one first."""
    found = {"{}.{}".format(*sys.version_info[:2]): sys.executable}
    for version in SUPPORTED:
        names = [shutil.which(f"python{version}")]
        names += map(str, sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
        for name in filter(None, names):
            says = subprocess.run([name, "--version"], capture_output=True, text=True, check=False)
            if says.returncode == 0 and says.stdout.startswith(f"Python {version}."):
                found.setdefault(version, name)
    return list(found.values())


def build(folder: Path) -> tuple[Path, Path]:
    """Build the source distribution, and the wheel from it, in an environment of their own."""
    tools = folder / "tools"
    venv.create(tools, with_pip=True)
    python = str(tools / ("Scripts" if os.name == "nt" else "bin") / "python")
    run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "build"])
    run([python, "-m", "build", "--outdir", str(folder / "dist"), str(ROOT)])
    (wheel,) = (folder / "dist").glob("*.whl")
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    for path in (wheel, sdist):
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB", flush=True)
    return wheel, sdist


def main() -> None:
    """Build, and try everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", action="append", metavar="PATH", help="only these Pythons")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="copy what was built there")
    options = parser.parse_args()
    text = (ROOT / "src/onebit/__init__.py").read_text()
    version = re.search(r'__version__ = "(.*)"', text)[1]  # type: ignore[index]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        wheel, sdist = build(folder)
        for i, python in enumerate(options.python or pythons()):
            start = time.monotonic()
            says = run([python, "--version"]).strip()
            print(f"{says}: {wheel.name}", flush=True)
            place = Place(python, folder / f"wheel-{i}")
            place.install(str(wheel))
            place.program(README, str(ROOT / "README.md"))
            place.program(SMOKE, version)
            place.install(f"{wheel}[serve]")
            print("   ", place.run(str(place.bin / "onebit"), "--version").strip())
            played = ["run", "--learner", "soba", "--stream", "synsep", "--rounds", "1000"]
            place.run(str(place.bin / "onebit"), *played, "--plot", "error.png")
            if os.name != "nt":  # a service needs locks on files, which onebit has on POSIX only
                place.serve()
            if i == 0:
                print(f"{says}: {sdist.name}", flush=True)
                from_source = Place(python, folder / "sdist")
                from_source.install(str(sdist))
                from_source.program(SMOKE, version)
            print(f"    {time.monotonic() - start:.0f} s", flush=True)
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            for path in (wheel, sdist):
                shutil.copy(path, options.keep)


if __name__ == "__main__":
    main()
