"""Run `onebit demo`, with a dot every second while Python imports it.

After an installation the first import reads hundreds of files, and may take long.
"""

import sys
from threading import Event, Thread


def _print_dots(ended: Event) -> None:
    while not ended.wait(1.0):
        print(".", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    print("starting onebit", file=sys.stderr, flush=True)
    imported = Event()
    dots = Thread(target=_print_dots, args=(imported,), daemon=True)
    dots.start()
    import onebit.cli
    import onebit.cli.demo

    imported.set()
    dots.join()
    onebit.cli.main(["demo", *sys.argv[1:]])
