"""Check the links of a built site: each leads to a page and a place that exist.

    python tools/docs/links.py FOLDER

No page may load a script, a style, a font or a picture from another host. Links to other hosts are
counted, not followed: `make docs-links` follows them.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ASSETS = {"script": "src", "link": "href", "img": "src", "source": "src", "iframe": "src"}
ELSEWHERE = re.compile(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//")


class Page(HTMLParser):
    """The ids, the links and the assets of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.assets: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what a tag refers to."""
        given = dict(attrs)
        self.ids |= {value for name in ("id", "name") if (value := given.get(name))}
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        elif (name := ASSETS.get(tag)) and given.get(name):
            self.assets.append(str(given[name]))


def wrong(folder: Path) -> Iterator[str]:
    """Yield what is wrong, one line each."""
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        for target in [*page.links, *page.assets]:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in page.assets and parts.scheme != "data":
                    yield f"{name} loads {target} from another host"
                continue
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not to.is_file():
                yield f"{name} links to {target}: no such page"
            elif parts.fragment and to in pages and unquote(parts.fragment) not in pages[to].ids:
                yield f"{name} links to {target}: no such place on that page"
    for path in sorted([*folder.rglob("*.css"), *folder.rglob("*.svg")]):
        if ELSEWHERE.search(path.read_text()):
            yield f"{path.relative_to(folder)} loads from another host"


def check(folder: Path) -> int:
    """Print what is wrong, and return whether anything is."""
    found = list(wrong(folder))
    print("\n".join(found))
    n_pages = len(list(folder.rglob("*.html")))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {n_pages} pages, {size / 1e6:.1f} MB, {len(found)} broken links")
    return int(bool(found) or not n_pages)


if __name__ == "__main__":
    sys.exit(check(Path(sys.argv[1])))
