"""Pages that are made from the package: the learners, the reference, the commands, the papers."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from textwrap import indent
from typing import Any

import typer.main

import onebit
from onebit import Learner, cli, learners
from onebit.cli.app import app
from onebit.cli.learners import learners_as_markdown, told
from onebit.cli.parameters import parameters_of, shown
from onebit.lab.experiments import EXPERIMENTS
from onebit.learners import frozen as frozen_room

ROOT = Path(__file__).parents[2]

TOP = {
    "Learning": [
        "Learner",
        "Decision",
        "DecisionList",
        "Explanation",
        "NONE_OF_THESE",
        "make_pipeline",
        "load",
    ],
    "Whole runs": ["play", "History", "to_batch", "warm_up"],
    "A remote model": ["Client", "AsyncClient"],
}
"""Names of `onebit` itself, by what they are for. The rest of `onebit.__all__` are modules."""

MODULES = {
    "features": "onebit.features",
    "streams": "onebit.streams",
    "evaluation": "onebit.evaluation",
    "theory": "onebit.theory",
    "bounds": "onebit.theory.bounds",
    "losses": "onebit.losses",
    "lab": "onebit.lab",
    "river": "onebit.contrib.river",
    "coba": "onebit.contrib.coba",
    "checks": "onebit.checks",
}
"""Modules with a page in the reference, by the name of the page."""


DECLARED = (
    "bound",
    "cost",
    "exempt",
    "feedback",
    "forms",
    "reference",
    "sized_forms",
    "state_version",
    "uses_truth",
)
"""What learners declare in class attributes: their page has it in a table."""

FOR_AUTHORS = ("exempt", "forms", "sized_forms", "state_version")
"""What of it only the author of a learner needs."""


def pages() -> dict[str, str]:
    """Return the text of each generated page, by its path."""
    made = {"learners/index.md": learners_index(), "reference/index.md": reference_index()}
    made |= {f"learners/{cls.__name__}.md": learner_page(cls) for cls in learners.classes()}
    made["reference/onebit.md"] = top_page()
    made |= {f"reference/{name}.md": module_page(path) for name, path in MODULES.items()}
    made["reference/commands.md"] = commands_page()
    made["experiments.md"] = experiments_page()
    return made


# Learners


def learners_index() -> str:
    """Return the table of all learners, those that need one bit first."""
    classes = sorted(learners.classes(), key=lambda cls: (cls.feedback, cls.__name__.lower()))
    frozen = [cls for cls in classes if cls.__module__.startswith(frozen_room.__name__)]
    listed = listed_learners([cls for cls in classes if cls not in frozen])
    return f"""# The learners

Each learner has a page: what it does, how it learns on one common stream, what is proven of it, and
where it departs from its paper. There are d features, nnz of them non-zero, K classes and T rounds;
L is the loss of the best linear predictor U, X the largest norm of an example; N is the number of
weak learners of a booster, gamma their edge over chance.

{listed}

Learners that are told the label are baselines for those that are told one bit. The reason to use a
bandit learner of the papers is its guarantee; on a benign stream its constant exploration costs
(K - 1)/K gamma mistakes per round for ever.

## For completeness

Papers have these, and others do better. They are tested as all others, and only defects are
corrected.

{listed_learners(frozen)}

[What differs from the papers](../papers.md), [regret and bounds as numbers](../theory.md) and
[online boosting](../boosting.md) say more.

{toctree(["../papers", "../theory", "../boosting", *(cls.__name__ for cls in classes)])}
"""


def listed_learners(classes: list[type[Learner]]) -> str:
    """Return a table of learners, with links to their pages."""
    return re.sub(r"^\| `(\w+)`", r"| [\1](\1.md)", learners_as_markdown(classes), flags=re.M)


def learner_page(cls: type[Learner]) -> str:
    """Return the page of a learner, from its declarations and its docstring."""
    parameters = shown(parameters_of(cls())) or "none"
    rows = [
        ["told after a round", told(cls)],
        ["time of a round", str(cls.cost)],
        ["proven", str(cls.bound)],
        ["published", cls.reference],
        ["default parameters", f"`{parameters}`"],
    ]
    name = cls.__name__
    picture = f"../pictures/learners/{name}.svg"
    parts = [f"# {name}", table(["", ""], rows)]
    if (ROOT / "docs" / "learners" / picture).resolve().is_file():
        parts += [
            "## On the common stream",
            f"![Error of {name} over rounds, beside all other learners]({picture})",
            "All learners on the same rounds ([what the stream is](../concepts.md#the-common-"
            "stream)); grey lines are the other learners that are told as much.",
        ]
    parts += ["## What it does", documented("onebit", name, without=DECLARED)]
    parts += ["All learners share the methods of [Learner](../reference/onebit.md)."]
    if errata := "\n".join(errata_of(cls)):
        parts += ["## What differs from the paper", errata]
    return "\n\n".join(parts)


def errata_of(cls: type[Learner]) -> Iterator[str]:
    """Yield the parts of docs/papers.md that are of the learner, or the items that name it."""
    page = (ROOT / "docs" / "papers.md").read_text()
    page = re.sub(r"\]\((?=[\w/]+\.(md|svg|png))", "](../", page)  # learners' pages are in a folder
    sections = page.split("\n## ")[1:]
    for section in sections:
        heading, _, text = section.partition("\n")
        if cls.reference in heading or re.search(rf"\b{cls.__name__}\b", heading):
            yield f"### {heading}\n{text}"
        else:
            items = re.findall(r"^- .*?(?=^- |^$|\Z)", text, re.MULTILINE | re.DOTALL)
            about = [item for item in items if f"`{cls.__name__}" in item]
            if about:
                yield f"### {heading}\n\n" + "".join(about)


# The reference


def reference_index() -> str:
    """Return the list of all pages of the reference."""
    rows = [["[onebit](onebit.md)", "learners, decisions, runs, clients"]]
    for name, path in MODULES.items():
        first = (import_module(path).__doc__ or "").strip().partition("\n")[0]
        rows.append([f"[{path}]({name}.md)", first])
    rows.append(["[onebit ...](commands.md)", "the command line"])
    return f"""# Reference

Made from the docstrings, whose examples are run by the tests. The learners have
[pages of their own](../learners/index.md).

{table(["", ""], rows)}

{toctree(["onebit", *MODULES, "commands"])}
"""


def top_page() -> str:
    """Return the page of the names of `onebit`."""
    listed = {name for names in TOP.values() for name in names}
    public = {*onebit._PLACES, *onebit._OF_EXTRAS}
    if listed != public:
        raise ValueError(f"the reference and onebit differ in {sorted(listed ^ public)}")
    parts = ["# onebit"]
    for title, names in TOP.items():
        parts += [f"## {title}", *(documented("onebit", name, inherited=True) for name in names)]
    return "\n\n".join(parts)


def module_page(path: str) -> str:
    """Return the page of a module's public names."""
    module = import_module(path)
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == path and not name.startswith("_")
    ]
    head = ["```{eval-rst}", f".. automodule:: {path}", "   :no-members:", "```"]
    ordered = sorted(names, key=str.isupper)  # constants come last
    found = [documented(path, name, inherited=True) for name in ordered]
    return "\n\n".join([f"# {path}", "\n".join(head), *found])


def documented(
    path: str, name: str, without: Iterable[str] = (), *, inherited: bool = False
) -> str:
    """Return the directive that documents a name of a module, and its members, some excluded.

    Inherited members are those of other classes of onebit.
    """
    value = getattr(import_module(path), name)
    kind = "class" if inspect.isclass(value) else "function" if inspect.isroutine(value) else "data"
    if inspect.ismodule(value):
        return f"`{value.__name__}` has [a page of its own]({name}.md)."
    if kind == "data":  # where it is imported from, with what is said where it is assigned
        text = said_of(path, name, value) or f"``{value}``"
        indented = indent(f":module: {path}\n\n{text}".strip(), "   ")
        return f"```{{eval-rst}}\n.. py:data:: {name}\n{indented}\n```"
    lines = ["```{eval-rst}", f".. auto{kind}:: {path}.{name}"]
    if kind == "class":
        lines += ["   :members:"]
        lines += [f"   :exclude-members: {', '.join(without)}"] if without else []
        if inherited:
            others = [c.__name__ for c in value.__mro__ if not c.__module__.startswith("onebit")]
            lines += [f"   :inherited-members: {', '.join(others)}"]
            lines += [f"   :exclude-members: {', '.join(FOR_AUTHORS)}"]
    return "\n".join([*lines, "```"])


def docstrings_below(module: Any) -> dict[str, str]:
    """Return the string below each assignment in a module, by the names assigned; often empty."""
    found: dict[str, str] = {}
    statements = ast.parse(inspect.getsource(module)).body
    for statement, below in pairwise([*statements, ast.Pass()]):
        if not isinstance(statement, ast.Assign | ast.AnnAssign):
            continue
        said = below.value.value if is_string(below) else ""
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for one in [one for target in targets for one in ast.walk(target)]:
            if isinstance(one, ast.Name):
                found[one.id] = inspect.cleandoc(said)
    return found


def is_string(statement: ast.stmt) -> bool:
    """Return whether a statement is a string alone."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def said_of(path: str, name: str, value: Any) -> str:
    """Return the docstring of a constant: below its assignment, in this module or one inside it."""
    for place, module in sorted(sys.modules.items()):
        if place.startswith(path) and vars(module).get(name) is value:
            said = docstrings_below(module)
            if name in said:
                return said[name]
    raise ValueError(f"{path}.{name} is assigned nowhere")


def commands_page() -> str:
    """Return what each command says of itself with --help."""
    for module in dict.fromkeys(cli._MODULES.values()):
        import_module(f"onebit.cli.{module}")
    # Typer's own copy of Click, or Click itself: both have these.
    group: Any = typer.main.get_command(app)
    parts = [
        "# The command line",
        "`pip install 'onebit[cli]'`; the laboratory needs `onebit[lab]`,",
    ]
    parts[1] += " the service `onebit[serve]`. Each command prints its page with `--help`."
    for name, command in sorted(commands_of(group, "onebit")):
        context = command.make_context(name, ["--help"], resilient_parsing=True)
        parts += [f"## {name}", f"```text\n{context.get_help()}\n```"]
    return "\n\n".join(parts)


def commands_of(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield all commands of a group and of the groups in it, with their names."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from commands_of(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


# The laboratory


def experiments_page() -> str:
    """Return the experiments that can be repeated, with how they differ from their papers."""
    rows = [[f"[{name}](#{name})", found.title] for name, found in EXPERIMENTS.items()]
    parts = [
        "# Experiments",
        "Most experiments have two scales: `small` takes minutes, `full` is that of the paper or of"
        " our pages. Runs that were played are kept, so only missing ones are played. The report is"
        " one page of HTML with pictures, tables and, for each claim of a paper, whether it holds"
        " here.",
        "```text\nonebit lab run NAME --scale small\nonebit lab show NAME\nonebit lab report\n```",
        table(["name", "experiment"], rows),
    ]
    for name, found in EXPERIMENTS.items():
        reference = re.sub(
            r"^No paper: .*docs/(\w+)\.md", r"No paper: [the results](\1.md)", found.reference
        )
        parts += [f"({name})=\n## {name}", f"**{found.title}.** {reference}"]
        parts += ["\n".join(f"- {note}" for note in found.notes)]
    return "\n\n".join(parts)


# Markdown


def table(headings: Iterable[str], rows: Iterable[list[str]]) -> str:
    """Return a table."""
    headings = list(headings)
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(
        "| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in lines
    )


def toctree(names: Iterable[str]) -> str:
    """Return the pages that follow in the navigation."""
    return "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])
