"""Machine code in onebit's wheels, so that the first decision need not wait for a compiler.

It is compiled for levels of a processor family (x86-64 and x86-64-v3; elsewhere the baseline), and
the best level that the processor supports is used. The names of its files depend on the function's
fingerprint, Python's minor version, the exact version of Numba, whose runtime it calls, the major
version of NumPy, the operating system and the architecture. (Numba's own cache depends on no
version of NumPy: compiled code reaches arrays through Numba's runtime.) If anything differs,
functions are compiled as without a wheel.

`make wheel` compiles it: with `VARIABLE` set to a folder, all code goes there.
"""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np

from onebit.core.fingerprint import digest

VARIABLE = "ONEBIT_MACHINE_CODE"
"""The environment variable with the folder that code for a wheel is written to."""

SWITCH = "ONEBIT_SHIPPED"
"""The environment variable that, if it is 0, makes this process ignore shipped code."""

FOLDER = Path(__file__).parents[1] / "machine_code"

BASELINE = {"x86_64": "x86-64", "amd64": "x86-64", "aarch64": "generic", "arm64": "generic"}
"""LLVM's names of the baseline processor of each architecture."""

V3 = "x86-64-v3"
V3_FEATURES = (
    *("cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"),
    *("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
)
"""The features of x86-64-v3 in the psABI, by LLVM's names."""


def versions() -> str:
    """Return the versions that shipped code depends on."""
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    machine = f"{sys.platform} {platform.machine().lower()}"
    return f"{python}, NumPy {np.__version__.split('.')[0]}, Numba {numba.__version__}, {machine}"


def levels() -> list[str]:
    """Return the levels of this processor's architecture, the best one first."""
    baseline = BASELINE.get(platform.machine().lower())
    if baseline is None:
        return []
    return [V3, baseline] if baseline == "x86-64" else [baseline]


@cache
def usable_levels() -> tuple[str, ...]:
    """Return the levels that this processor supports, the best one first.

    There are none if Numba is configured for another processor.
    """
    config = numba.config
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None:  # type: ignore[attr-defined]
        return ()
    has = llvm.get_host_cpu_features()
    has_v3 = all(has.get(feature, False) for feature in V3_FEATURES)
    return tuple(level for level in levels() if level != V3 or has_v3)


def folders(name: str, fingerprint: str, linker: str) -> list[Path]:
    """Return the folders that may have a function's code, the best level first."""
    if not FOLDER.is_dir() or os.environ.get(SWITCH) == "0":
        return []
    folder = _folder(name, fingerprint, linker)
    return [FOLDER / level / folder for level in usable_levels()]


def build_folders(name: str, fingerprint: str, linker: str) -> list[Path]:
    """Return the folder for a function's code, if this process compiles for a wheel."""
    if VARIABLE not in os.environ:
        return []
    return [Path(os.environ[VARIABLE]) / _folder(name, fingerprint, linker)]


def _folder(name: str, fingerprint: str, linker: str) -> str:
    return f"{name}-{digest(fingerprint, versions(), linker)}"
