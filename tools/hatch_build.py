"""Add machine code to wheels, and say which Python and platform they are for.

It is a hook of hatchling; `make wheel` sets the variable. Without it, wheels are pure Python.
"""

import os
import sys
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "ONEBIT_WHEEL_CODE"


class MachineCodeHook(BuildHookInterface):
    """Include the folder that `tools/machine_code.py` wrote."""

    def initialize(self, version, build_data):
        """Include it, unless the build is an editable install."""
        folder = os.environ.get(VARIABLE)
        if not folder or version == "editable":
            return
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        # It needs no C library but that of the process, by names that all versions have: exp, log.
        platform = sysconfig.get_platform().replace("linux-", "manylinux_2_17-")
        build_data["pure_python"] = False
        build_data["tag"] = f"{python}-{python}-{platform.replace('-', '_').replace('.', '_')}"
        build_data["force_include"][os.path.abspath(folder)] = "onebit/machine_code"
