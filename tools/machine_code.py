"""Compile the machine code that wheels carry, for all levels of this architecture.

    python tools/machine_code.py FOLDER

`onebit.core.shipped` says what it is and when it is used; `onebit.warming.shipped_forms` lists the
learners. Python, NumPy and Numba are those of this environment.
"""

import shutil
import sys
from pathlib import Path
from time import perf_counter

from onebit import streams
from onebit.core import fence, shipped
from onebit.core.compiling import HOOKS
from onebit.core.hooks import Hook
from onebit.core.workers import Task, WorkerError, n_processes, run_all
from onebit.warming import shipped_tasks


def main(folder: Path) -> None:
    """Compile everything, and print how much it is."""
    if len(HOOKS) < len(Hook):
        sys.exit("wheels carry code that is made with all hooks into Numba, and some are off here")
    shutil.rmtree(folder, ignore_errors=True)
    tasks = [*shipped_tasks(), Task(streams.synsep, (2,))]
    folder.mkdir(parents=True)
    (folder / fence.shipped_check(HOOKS)).touch()
    for level in shipped.levels():
        start = perf_counter()
        environment = {
            "NUMBA_CPU_NAME": level,
            "NUMBA_CPU_FEATURES": "",
            shipped.VARIABLE: str(folder / level),
        }

        def show(i: int, result: object, level: str = level, start: float = start) -> None:
            if isinstance(result, WorkerError):
                sys.exit(f"{tasks[i]}: {result}")
            nonlocal done
            done += 1
            seconds = perf_counter() - start
            print(
                f"\r{level}: {done} of {len(tasks)} functions, {seconds:.0f} s", end="", flush=True
            )

        done = 0
        run_all(tasks, n_processes(), environment, show)
        files = list((folder / level).glob("*/*.compiled"))
        size = sum(file.stat().st_size for file in files)
        print(f"\n{level}: {len(files)} files, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
