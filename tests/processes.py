"""New Python processes in a fraction of a second.

To import scikit-learn and Numba takes one longer than most of what tests do in it. So one process
imports these, and nothing of onebit, and those of the tests are its forks.
"""

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
from functools import cache
from typing import NamedTuple

SECONDS = 300
"""After which a process counts as hung."""

SERVER = """
import atexit, gc, json, os, sys, threading, traceback
import numba, numpy, safetensors.numpy, scipy.optimize, scipy.stats
import sklearn.base, sklearn.metrics, sklearn.utils.estimator_checks
numba.njit(lambda x: x.sum())(numpy.ones(1))  # the first compiling of a process takes longer
gc.freeze()
for line in sys.stdin:
    task = json.loads(line)
    child = os.fork()
    if not child:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
for descriptor, file in enumerate(("/dev/null", task["stdout"], task["stderr"])):
    os.dup2(os.open(file, os.O_RDWR), descriptor)
os.chdir(task["cwd"])
os.environ.clear()
os.environ.update(task["environment"])
sys.path[:1] = ["", *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
sys.argv = ["-c", *task["arguments"]]
try:
    exec(task["code"], globals())
    code = 0
except SystemExit as end:
    code = end.code or 0
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
except BaseException:
    traceback.print_exc()
    code = 1
# To take apart all that was imported, as Python does in the end, takes as long as most tests.
threading._shutdown()
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)
"""


class Ended(NamedTuple):
    """How a process ended, and what it printed; a signal that ended it is a negative code."""

    returncode: int
    stdout: str
    stderr: str


def run_python(code, *arguments, cwd=None, environment=os.environ, check=False):
    """Run code in a process of its own, where compiled code may do its worst.

    Numba's switches, ``NUMBA_...``, are read before `environment` is set.
    """
    with tempfile.NamedTemporaryFile() as stdout, tempfile.NamedTemporaryFile() as stderr:
        task = {
            "code": textwrap.dedent(code),
            "arguments": list(map(str, arguments)),
            "cwd": os.fspath(cwd or os.getcwd()),
            "environment": dict(environment),
            "stdout": stdout.name,
            "stderr": stderr.name,
        }
        server = _server()
        server.stdin.write(json.dumps(task) + "\n")
        server.stdin.flush()
        if not select.select([server.stdout], [], [], SECONDS)[0]:
            _server.cache_clear()
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
            raise TimeoutError(f"the process ran for more than {SECONDS} s")
        returncode = int(server.stdout.readline())
        ended = Ended(returncode, stdout.read().decode(), stderr.read().decode())
    if check and returncode:
        raise AssertionError(f"the process ended with {returncode}:\n{ended.stderr}")
    return ended


@cache
def _server():
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    atexit.register(server.communicate)  # it ends when its input does
    return server
