"""Runs of experiments, and one page with the results."""

from __future__ import annotations

import base64
import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import onebit
from onebit.core.replacing import replace_file
from onebit.lab import shipped as shipping
from onebit.lab.code import fingerprint_of
from onebit.lab.experiment import SCALES, Finding, Section, Sweep
from onebit.lab.experiments import EXPERIMENTS, Experiment
from onebit.lab.pages import write_page
from onebit.lab.results import Folder, read_table
from onebit.lab.shipped import shipped
from onebit.lab.sweeps import Run, runs_of, sweep
from onebit.streams.named import VARIABLE

if TYPE_CHECKING:
    import pandas as pd

ABOUT = "about.json"
"""Name of the file with the settings and versions that made the results."""


def run_experiment(
    name: str,
    scale: str,
    folder: Path,
    *,
    options: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    streams: Sequence[str] = (),
    fresh: bool = False,
    ship: bool = False,
    jobs: int = -1,
    dask: str | None = None,
    progress: Callable[[str, int, int], Any] | None = None,
) -> Path:
    """Run what is missing of an experiment, and return the folder of the results.

    `options` are those of the experiment; `seeds` is the largest number of seeds of each sweep, and
    `streams` are names of the streams to play, by default all. Results of other tools that come
    with the package are not played again, unless `fresh`; with `ship`, the package keeps those that
    were played.
    """
    place = _place(name, scale, folder)
    experiment = EXPERIMENTS[name].with_options(**(options or {}))
    sweeps = chosen_sweeps(experiment, scale, seeds, streams)
    for part, wanted in list(sweeps.items()):
        said = None if progress is None else _progress_of(part, progress)
        known = None if fresh else shipped
        table = sweep(
            *wanted, jobs=jobs, dask=dask, folder=place / part, progress=said, known=known
        )
        if table.empty:  # of tools that are not installed
            del sweeps[part]
        if ship:
            shipping.ship(_results_in(wanted, place / part))
    code = {type(run) for wanted in sweeps.values() for run in _learners(wanted)}
    about = {
        "experiment": name,
        "scale": scale,
        "options": dict(options or {}),
        "seeds": seeds,
        "streams": list(streams),
        "sweeps": {
            part: {
                "learners": {n: repr(learner) for n, learner in wanted.learners.items()},
                "grid": dict(wanted.grid),
                "streams": {n: repr(stream) for n, stream in wanted.streams.items()},
                "seeds": wanted.seeds,
                "measure": repr(wanted.measure),
            }
            for part, wanted in sweeps.items()
        },
        "versions": {
            "onebit": onebit.__version__,
            "code": fingerprint_of(code)[:12],
            "python": platform.python_version(),
            **{package: version(package) for package in ("numpy", "scipy", "numba")},
        },
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
    replace_file(place / ABOUT, json.dumps(about, indent=1).encode())
    return place


def _results_in(wanted: Sweep, place: Path) -> Iterable[tuple[Run, dict[str, Any]]]:
    """Yield the runs of a sweep that were played, with their results."""
    kept = Folder(place)
    with TemporaryDirectory() as data:
        for run in runs_of(*wanted, Path(data)):
            if (found := kept.read(run.key)) is not None:
                yield run, found


def _learners(wanted: Sweep) -> Iterable[Any]:
    for some in wanted.learners.values():
        yield from some if isinstance(some, list | tuple) else [some]


def chosen_sweeps(
    experiment: Experiment, scale: str, seeds: int | None, streams: Sequence[str]
) -> dict[str, Sweep]:
    """Return the sweeps of an experiment, with the first seeds and the chosen streams only."""
    sweeps = experiment.sweeps(scale)
    if not sweeps:
        raise ValueError(
            f"{experiment.name} has no data here: {VARIABLE} names their folder"
            + (", or --tables one of tables" if "tables" in experiment.options else "")
        )
    known = dict.fromkeys(
        name
        for wanted in sweeps.values()
        for name in [*wanted.streams, *wanted.grid.get("stream", [])]
    )
    for name in streams:
        if name not in known:
            raise ValueError(
                f"{experiment.name} has no stream {name!r}: there are {', '.join(known)}"
            )
    found = {}
    for part, wanted in sweeps.items():
        chosen = wanted._replace(seeds=wanted.seeds[:seeds])
        if streams and wanted.streams:
            some = {n: s for n, s in wanted.streams.items() if n in streams}
            chosen = chosen._replace(streams=some)
        elif streams:  # trials, which may have names of streams among their parameters
            names = [n for n in wanted.grid.get("stream", []) if n in streams]
            chosen = chosen._replace(grid={**wanted.grid, "stream": names})
        if chosen.streams or not (wanted.streams or streams) or chosen.grid.get("stream"):
            found[part] = chosen
    return found


def _place(name: str, scale: str, folder: Path) -> Path:
    if name not in EXPERIMENTS:
        raise ValueError(f"no experiment {name!r}: there are {', '.join(EXPERIMENTS)}")
    if scale not in SCALES:
        raise ValueError(f"the scale is {' or '.join(SCALES)}; got {scale!r}")
    return folder / f"{name}-{scale}"


def sections_of(name: str, scale: str, folder: Path) -> list[Section]:
    """Return the parts of the report on an experiment that was run."""
    place = _place(name, scale, folder)
    if not (place / ABOUT).exists():
        raise ValueError(
            f"{place} has no results: onebit lab run {name} --scale {scale} makes them"
        )
    return _sections(EXPERIMENTS[name], _about(place), place)


def write_on_page(name: str, scale: str, folder: Path, page: Path) -> None:
    """Write the results of an experiment that was run into a page of the documentation."""
    write_page(page, _about(_place(name, scale, folder)), sections_of(name, scale, folder))


def _about(place: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((place / ABOUT).read_bytes())
    except ValueError as error:
        raise ValueError(f"{place / ABOUT}: {error}") from None
    known = isinstance(found, dict) and isinstance(found.get("sweeps"), dict)
    if not known or found.get("scale") not in SCALES:
        raise ValueError(
            f"{place / ABOUT}: not the settings of an experiment, with its scale and its sweeps"
        )
    return found


def _sections(experiment: Experiment, about: dict[str, Any], place: Path) -> list[Section]:
    tables = {part: read_table(place / part / "results.parquet") for part in about["sweeps"]}
    try:
        return experiment.sections(tables, about["scale"])
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # Tables of another experiment lack learners, streams or columns that these sections need.
        raise ValueError(
            f"{place}: not the results of the experiment {experiment.name!r} "
            f"({type(error).__name__}: {error})"
        ) from error


def _progress_of(part: str, progress: Callable[[str, int, int], Any]) -> Callable[[int, int], Any]:
    return lambda done, total: progress(part, done, total)


def write_report(folder: Path) -> Path:
    """Write report.html of all results in a folder, with PNG and CSV beside it; return its path."""
    parts = []
    for experiment in EXPERIMENTS.values():
        for place in [folder / f"{experiment.name}-{scale}" for scale in SCALES]:
            if (place / ABOUT).exists():
                parts.append(_experiment_as_html(experiment, _about(place), place, folder))
    if not parts:
        raise ValueError(f"{folder} has no results: onebit lab run NAME makes them")
    page = _PAGE.format(style=_STYLE, body="\n".join(parts))
    replace_file(folder / "report.html", page.encode())
    return folder / "report.html"


def _experiment_as_html(
    experiment: Experiment, about: dict[str, Any], place: Path, folder: Path
) -> str:
    lines = [
        f"<article><h2>{escape(experiment.title)}</h2>",
        f"<p class=reference>{escape(experiment.reference)} Scale: {escape(_scale(about))}.</p>",
    ]
    for section in _sections(experiment, about, place):
        lines.append(_section_as_html(section, place.name, folder))
    notes = "".join(f"<li>{escape(text)}</li>" for text in experiment.notes)
    settings = escape(json.dumps(about, indent=1))
    lines += [
        f"<h3>Settings, and what differs from the paper</h3><ul>{notes}</ul>",
        f"<details><summary>Settings and versions</summary><pre>{settings}</pre></details>",
        "</article>",
    ]
    return "\n".join(lines)


def _scale(about: dict[str, Any]) -> str:
    seeds, options = about.get("seeds"), about.get("options", {})
    given = "".join(f", {name} {value}" for name, value in options.items())
    few = "" if seeds is None else f", but at most {seeds} seeds of each sweep"
    return f"{about['scale']}{given}{few}"


def _section_as_html(section: Section, prefix: str, folder: Path) -> str:
    lines = [f"<section><h3>{escape(section.title)}</h3><p>{escape(section.text)}</p>"]
    slug = f"{prefix}-{_slug(section.title)}"
    if section.figures:
        lines.append(f"<div class='figures{' wide' * section.wide}'>")
        for name, figure in section.figures.items():
            picture = BytesIO()
            figure.savefig(picture, format="png", dpi=130)
            replace_file(folder / f"{slug}-{_slug(name)}.png", picture.getvalue())
            data = base64.b64encode(picture.getvalue()).decode()
            alt = escape(f"{section.title}: {name}", quote=True)
            lines.append(f'<img alt="{alt}" src="data:image/png;base64,{data}">')
        lines.append("</div>")
    for name, table in section.tables.items():
        replace_file(folder / f"{slug}-{_slug(name)}.csv", table.to_csv(index=False).encode())
        caption = f"<p class=caption>{escape(name)}</p>" if len(section.tables) > 1 else ""
        lines.append(f"{caption}<div class=scrolled>{_table_as_html(table)}</div>")
    if section.findings:
        rows = "".join(map(_finding_as_html, section.findings))
        lines.append(f"<ul class=findings>{rows}</ul>")
    return "\n".join([*lines, "</section>"])


def _table_as_html(table: pd.DataFrame) -> str:
    rows = [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    columns = zip(*rows, strict=True) if rows else [()] * len(table.columns)
    numbers = [all(map(_begins_with_number, column)) for column in columns]

    def line(tag: str, cells: Iterable[str]) -> str:
        parts = zip(cells, numbers, strict=True)
        return "".join(
            f"<{tag}{'' if right else ' class=text'}>{escape(cell)}</{tag}>"
            for cell, right in parts
        )

    body = "".join(f"<tr>{line('td', row)}</tr>\n" for row in rows)
    head = line("th", map(str, table.columns))
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _begins_with_number(cell: str) -> bool:
    """Whether a cell is empty or holds numbers, such as 1,234 ±5."""
    try:
        float(cell.partition(" ")[0].replace(",", "") or 0.0)
    except ValueError:
        return False
    return True


def _finding_as_html(finding: Finding) -> str:
    return (
        f"<li class={_slug(finding.verdict)}><b>{finding.verdict}</b> {escape(finding.claim)} "
        f"<span>{escape(finding.seen)}</span></li>"
    )


def _slug(text: str) -> str:
    words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
    return "-".join(words)[:40]


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 1180px; margin: 0 auto;
       padding: 1rem; }
h1 { font-size: 1.6rem } h2 { font-size: 1.35rem; border-top: 2px solid #0072B2; padding-top: 1rem }
h3 { font-size: 1.1rem; margin-bottom: .2rem }
.reference { color: #555 }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr));
           gap: 1rem }
.figures img { width: 100%; max-width: 620px; height: auto }
.figures.wide { display: block } .figures.wide img { max-width: 100% }
.scrolled { overflow-x: auto } .caption { font-weight: 600; margin: .8rem 0 0 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .5rem 0 }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #ddd;
         white-space: nowrap }
.text { text-align: left }
.findings { list-style: none; padding: 0 }
.findings li { border-left: 4px solid #999; padding: .2rem .8rem; margin: .5rem 0 }
.findings li.holds { border-color: #009E73 } .findings li.does-not-hold { border-color: #D55E00 }
.findings b { display: inline-block; margin-right: .5rem }
.findings span { color: #555; display: block }
pre { overflow-x: auto; font-size: .8rem; background: #f5f5f5; padding: .7rem }
@media (max-width: 600px) { table { font-size: .8rem }
                            th, td { padding: .2rem .35rem }
                            th, .text { white-space: normal }
                            .figures.wide { overflow-x: auto }
                            .figures.wide img { max-width: none; width: 720px } }
"""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>onebit: experiments</title><style>{style}</style></head>
<body><h1>What the papers found, what we claim, and what was seen here</h1>
{body}
</body></html>
"""
