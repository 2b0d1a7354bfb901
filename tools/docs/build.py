"""Build the documentation site, and check every link in it.

    python tools/docs/build.py [FOLDER]

The pages of docs/ and the project's own (README, CHANGELOG, CONTRIBUTING, SECURITY) are copied to
build/docs, where `generated.py` adds those that are made from the package: a page for each learner,
the reference, the commands. Sphinx then writes HTML to FOLDER, by default build/site; a warning is
an error. `links.py` checks that all links lead somewhere, and that no page loads anything from
another host.
"""

import re
import shutil
import sys
from pathlib import Path

import generated
import links
from sphinx.cmd.build import build_main

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "build" / "docs"
PAGES_OF_ROOT = ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"]


def stage() -> None:
    """Copy all pages to one folder, and add the generated ones."""
    shutil.rmtree(SOURCES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCES)
    for name in PAGES_OF_ROOT:
        text = (ROOT / name).read_text()
        (SOURCES / name.lower()).write_text(moved(text))
    for page in SOURCES.rglob("*.md"):
        # Doctests need an empty line before the end of their block.
        page.write_text(root_links(page.read_text()).replace("\n\n```\n", "\n```\n"))
    shutil.copytree(ROOT / "examples", SOURCES / "examples", ignore=shutil.ignore_patterns("__*"))
    for name, text in generated.pages().items():
        page = SOURCES / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text)


def moved(text: str) -> str:
    """Return a page of the project's folder with its links as they are from docs/."""
    text = re.sub(r"\]\(\s*docs/", "](", text)
    return re.sub(r"\]\(([A-Z_]+\.md)\)", lambda found: f"]({found[1].lower()})", text)


def root_links(text: str) -> str:
    """Return a page of docs/ with its links to the project's own pages as they are on the site."""
    return re.sub(
        r"\]\(((?:\.\./)*)\.\./([A-Z_]+\.md)(#[\w-]+)?\)",
        lambda found: f"]({found[1]}{found[2].lower()}{found[3] or ''})",
        text,
    )


def main(folder: Path) -> int:
    """Build the site, and return whether something is wrong with it."""
    stage()
    shutil.rmtree(folder, ignore_errors=True)
    here = str(Path(__file__).parent)
    options = ["-b", "html", "-c", here, "-d", str(SOURCES / "_build"), "-j", "2", "-q"]
    if build_main([*options, "-W", "--keep-going", str(SOURCES), str(folder)]):
        return 1
    # Templates and source maps of the theme, which no page uses.
    for path in [*folder.glob("_static/*macros.html"), *folder.rglob("*.map")]:
        path.unlink()
    return links.check(folder)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"))
