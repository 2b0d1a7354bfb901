"""Results of experiments in pages of the documentation, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onebit.core.replacing import replace_file
from onebit.lab.experiment import Section

if TYPE_CHECKING:
    import pandas as pd

END = "<!-- End of what was written. -->\n"


def command_of(about: dict[str, Any]) -> str:
    """Return the command that made results, from their settings."""
    parts = ["onebit lab run", about["experiment"], "--scale", about["scale"]]
    for name, value in about["options"].items():
        parts += [f"--{name}", f'"{value}"' if " " in value else value]
    if about["streams"]:
        parts += ["--streams", ",".join(about["streams"])]
    if about["seeds"] is not None:
        parts += ["--seeds", str(about["seeds"])]
    return " ".join(parts)


def write_page(path: Path, about: dict[str, Any], sections: Sequence[Section]) -> None:
    """Write tables, findings and pictures where the page has those of the same command.

    Pictures go to a folder beside the page.
    """
    begin = f"<!-- Written from `{command_of(about)}`. -->\n"
    head, mark, rest = path.read_text().partition(begin)
    _, end, tail = rest.partition(END)
    if not mark or not end:
        raise ValueError(f"{path} has no place for the results: {begin.strip()} ... {END.strip()}")
    lines = _page(sections, path.parent / "pictures", about["experiment"])
    replace_file(path, (head + mark + "\n".join(lines) + "\n" + end + tail).encode())


def _page(sections: Sequence[Section], pictures: Path, name: str) -> Iterator[str]:
    shown = [some for some in sections if some.on_page]
    for i, section in enumerate(shown):
        if len(shown) > 1:
            yield f"{chr(10) * (i > 0)}### {section.title}\n"
        yield f"{section.text}\n"
        for j, table in enumerate(section.on_page_tables()):
            if j > 0:
                yield ""
            yield from markdown(table)
        for finding in section.findings:
            claim, seen = finding.claim.removesuffix("."), finding.seen.removesuffix(".")
            yield f"\n{claim}. It {finding.verdict}: {seen}."
        for title, figure in section.figures.items():
            pictures.mkdir(exist_ok=True)
            figure.savefig(pictures / f"{name}-{title}.png", dpi=100)
            yield f"\n![{section.title}](pictures/{name}-{title}.png)"


def markdown(table: pd.DataFrame) -> Iterator[str]:
    """Yield the lines of a table; all columns but the first are right-aligned."""
    rows = [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    yield f"| {' | '.join(map(str, table.columns))} |"
    yield f"| --- |{' ---: |' * (len(table.columns) - 1)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
