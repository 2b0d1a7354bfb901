"""What a release needs: one version everywhere, workflows that call what exists, typed names."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import onebit
from onebit import learners

ROOT = Path(__file__).parent.parent
TARGETS = {
    target
    for rule in re.findall(r"^([a-z][a-z -]*):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target in rule.split()
}


def test_one_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", onebit.__version__)
    newest = re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest[1] == onebit.__version__
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == onebit.__version__


def test_one_list_of_pythons():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    kinds = [kind.rpartition(" ")[2] for kind in project["classifiers"] if "Python ::" in kind]
    supported = [version for version in kinds if "." in version]
    assert project["requires-python"] == f">={supported[0]}"
    tools = (ROOT / "tools/release_check.py").read_text()
    found = re.search(r"^SUPPORTED = \((.*)\)$", tools, re.MULTILINE)[1]
    assert re.findall(r'"([\d.]+)"', found) == supported
    assert f"Python {', '.join(supported[:-1])} and {supported[-1]}." in " ".join(
        (ROOT / "docs/versions.md").read_text().split()
    )
    tests, release = (
        yaml.safe_load((ROOT / ".github/workflows" / name).read_text())["jobs"]
        for name in ("tests.yml", "release.yml")
    )
    for job in (tests["newest"], tests["wheel"], release["machine-code"]):
        assert job["strategy"]["matrix"]["python"] == supported
    for job in (tests["tests"], tests["windows"]):
        assert job["strategy"]["matrix"]["python"] == [supported[0], supported[-1]]
    for job in (tests["release-check"], release["pure"]):
        given = [step["with"] for step in job["steps"] if "with" in step]
        installed = [one["python-version"].split() for one in given if "python-version" in one]
        assert installed == [supported]


@pytest.mark.parametrize("name", ["tests.yml", "release.yml"])
def test_workflows_call_what_exists(name):
    jobs = yaml.safe_load((ROOT / ".github/workflows" / name).read_text())["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert len(commands) > 1
    for command in commands:
        first, second = command.split()[:2]
        assert second in TARGETS if first == "make" else (ROOT / second).is_file(), command


@pytest.mark.parametrize(
    "path", [".pre-commit-config.yaml", *sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))]
)
def test_templates_can_be_read(path):
    assert yaml.safe_load((ROOT / path).read_text())


def test_type_checkers_know_every_learner():
    text = Path(onebit.__file__).read_text()
    known = re.findall(r"^    from onebit\.learners import (\w+) as \1$", text, re.MULTILINE)
    assert sorted(known) == sorted(learners.__all__)


def test_public_names_are_typed(tmp_path):
    """mypy, with no settings of this project, accepts right uses of them and refuses wrong ones."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from onebit import OneBitClassifier, play\n"
        "number: int = OneBitClassifier(random_state=0).decide([1.0])\n"
        "OneBitClassifier(gamma=0.1)\n"
        "play('soba', [[1.0]], [0])\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary"]
    command += ["--follow-imports=silent", "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run(
        [*command, str(ROOT / "tests/typed/user_program.py"), str(wrong)],
        capture_output=True,
        text=True,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        cwd=tmp_path,
    )
    errors = re.findall(r"(\w+)\.py:(\d+): error", done.stdout)
    assert errors == [("wrong", "2"), ("wrong", "3"), ("wrong", "4")], done.stdout
