"""What a wheel contains besides code."""

import csv
import io
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Return a wheel of this checkout, without machine code."""
    from hatchling.builders.wheel import WheelBuilder

    folder = tmp_path_factory.mktemp("dist")
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return zipfile.ZipFile(path)


def test_a_wheel_has_the_runs_of_other_tools(wheel):
    """Without them, comparisons of an installed onebit would silently have no rivals."""
    text = wheel.read("onebit/lab/shipped.csv").decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {"squarecb", "LinUCB 1", "bayesianbandits", "VW squarecb"} <= {r["tool"] for r in rows}
    assert sum(len(row["seeds"].split()) for row in rows) > 7_000
    assert len(text) < 1_000_000


def test_a_wheel_has_every_file_that_the_package_has(wheel):
    package = ROOT / "src" / "onebit"
    expected = {
        f"onebit/{path.relative_to(package).as_posix()}"
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert expected <= set(wheel.namelist())
    assert "onebit/numerics/winning.safetensors" in expected
