"""Send requests from a process of its own, so that whoever measures others shares nothing with it.

    python bench/serve_request.py METHOD URL [URL ...] [--file FILE] [--json TEXT]

With a file as body, it is a log (JSON lines). It ends with 1 if one is not answered with 200.
"""

from __future__ import annotations

import argparse
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit


def main() -> None:
    """Send the requests, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("method")
    parser.add_argument("urls", nargs="+")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--json")
    options = parser.parse_args()
    for url in map(urlsplit, options.urls):
        http = HTTPConnection(str(url.hostname), url.port or 80, timeout=3600)
        if options.file is not None:
            with open(options.file, "rb") as file:
                headers = {"content-type": "application/x-ndjson"}
                http.request(options.method, url.path, file, headers)
        else:
            headers = {"content-type": "application/json"}
            http.request(options.method, url.path, options.json, headers)
        reply = http.getresponse()
        if reply.status != 200:
            sys.exit(reply.read().decode())
        while reply.read(2**16):
            pass


if __name__ == "__main__":
    main()
