"""Settings of Sphinx for the documentation site; `make docs` builds it.

Sphinx with MyST, because the docstrings are numpydoc with doctests, which its autodoc renders and
cross-references, because it fails on a broken reference, and because it needs no other service: the
search runs in the browser, and the theme carries its own fonts and scripts.
"""

import re
from importlib.metadata import version as version_of

from docutils import nodes
from sphinx import addnodes
from sphinx.domains.python import PyObject

project = "onebit"
author = "the onebit authors"
copyright = "the onebit authors, BSD-3-Clause"  # noqa: A001
version = release = version_of("onebit")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types in signatures name what has no page

myst_heading_anchors = 3
highlight_language = "text"
smartquotes = False  # options begin with two hyphens, and x' is x transposed

# Docstrings have code in single backticks, as Markdown has.
default_role = "code"
autodoc_class_signature = "mixed"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # the docstrings name the types
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_use_admonition_for_examples = False

html_theme = "pydata_sphinx_theme"
html_title = f"onebit {release}"
html_static_path = ["static"]
html_css_files = ["onebit.css"]
html_domain_indices = False
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": "onebit"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
}
html_sidebars = {"index": [], "changelog": [], "start": [], "serve": []}


def skip_generated(app, what, name, obj, skip, options):
    """Leave out what others generate: scikit-learn's routing, and fields of named tuples."""
    is_field = (getattr(obj, "__doc__", None) or "").startswith("Alias for field number")
    return True if is_field or re.fullmatch(r"set_\w+_request", name) else skip


def literal_formulas(app, what, name, obj, options, lines):
    """Keep the lines of indented formulas: in prose, what is indented is a literal block."""
    made: list[str] = []
    prose, above = True, ""
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and lines[i + 1] and set(lines[i + 1]) == {"-"}:
            prose = line == "Notes"
        begins = line.startswith("    ") and not above.startswith("    ") and not lines[i - 1]
        if prose and begins and not above.lstrip().startswith("- ") and not above.endswith("::"):
            made += ["::", ""]
        made.append(line)
        above = line or above
    lines[:] = made


def escape_marks(app, what, name, obj, options, lines):
    """Leave |x| and "M. Herbster" as they are: not a substitution's name, nor item M of a list."""
    literal = False
    for i, line in enumerate(lines):
        if line == "::" or line.startswith(">>>"):
            literal = True
        elif literal and line and not line.startswith((" ", ".", ">")) and not lines[i - 1]:
            literal = False
        if not literal:
            parts = re.split(r"(`+[^`]*`+)", line)
            escaped = "".join(p if p.startswith("`") else p.replace("|", "\\|") for p in parts)
            lines[i] = re.sub(r"^(\s*)(?=[A-Z]\. )", r"\1\\", escaped)


def split_attributes(app, what, name, obj, options, lines):
    """Give each of several attributes on one line an entry: Napoleon takes them for a type."""
    made: list[str] = []
    section = ""
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and lines[i + 1] and set(lines[i + 1]) == {"-"}:
            section = line
        several = re.fullmatch(r"(\w+(?:, \w+)+)( : .*)?", line)
        if section == "Attributes" and several:
            rest = i + 1
            while rest < len(lines) and (lines[rest].startswith(" ") or not lines[rest]):
                rest += 1
            *first, last = several[1].split(", ")
            for one in first:
                made += [one + (several[2] or ""), *lines[i + 1 : rest]]
            line = last + (several[2] or "")
        made.append(line)
    lines[:] = made


for field in PyObject.doc_field_types:
    if field.name == "variable":
        field.label = "Attributes"  # as in the docstrings

PROPERTIES: dict[str, list[str]] = {}


def hide_property(app, what, name, obj, options, lines):
    """Hide the docstring of a property from Napoleon, which takes "In words: ..." for a type."""
    if what in ("property", "attribute"):
        PROPERTIES[name] = list(lines)
        lines.clear()


def show_property(app, what, name, obj, options, lines):
    """Show it again."""
    lines[:] = PROPERTIES.pop(name, lines)


def drop_accidental_links(app, doctree):
    """Leave words of types, as in "array-like of labels", unlinked: names of types are capital."""
    for link in [*doctree.findall(addnodes.pending_xref)]:
        target = link.get("reftarget", "")
        if link.get("refdomain") == "py" and target.islower() and "." not in target:
            link.replace_self(link.children)


def draw_dashes(app, doctree):
    """Draw the dash between a parameter and its meaning, which Sphinx leaves to smart quotes."""
    for body in doctree.findall(nodes.field_body):
        for text in [*body.findall(nodes.Text)]:
            drawn = re.sub(r"^(\)?) -- ", "\\1 \u2013 ", text)
            if drawn != text:
                text.parent.replace(text, nodes.Text(drawn))


ONE_PANEL = ("pictures/learners/", "reliability")
"""In the names of pictures that are readable at the width of a telephone."""


def mark_pictures(app, doctree):
    """Mark pictures of one panel, which need not scroll."""
    for picture in doctree.findall(nodes.image):
        if any(part in picture["uri"] for part in ONE_PANEL):
            picture["classes"].append("one-panel")


WIDE_TABLE_COLUMNS = 8
WIDE_TABLE_CHARACTERS = 85
TABLE_COLUMNS_ON_A_TELEPHONE = 4
LONG_CELL_CHARACTERS = 60
LONG_NAME_CHARACTERS = 22


def mark_wide_tables(app, doctree, page):
    """Mark tables that have small type, or names that stay in sight, and cells that may break."""
    for group in doctree.findall(nodes.tgroup):
        rows = [list(row.findall(nodes.entry)) for row in group.findall(nodes.row)]
        n_columns = group["cols"]
        width = sum(2 + max(map(characters, column)) for column in zip(*rows, strict=True))
        if n_columns >= WIDE_TABLE_COLUMNS or width > WIDE_TABLE_CHARACTERS:
            group.parent["classes"].append("wide")
        if n_columns > TABLE_COLUMNS_ON_A_TELEPHONE and all(row[0].astext() for row in rows[1:]):
            group.parent["classes"].append("named-rows")
        for entry in group.findall(nodes.entry):
            if len(entry.astext()) > LONG_CELL_CHARACTERS:
                entry["classes"].append("long")
        for first, *_ in rows:
            if len(first.astext()) > LONG_NAME_CHARACTERS:
                first["classes"].append("long-name")


def characters(entry):
    """Return how many characters of a cell of a table are always on one line."""
    is_number = "text-right" in entry["classes"]
    return len(entry.astext()) if is_number else longest_word(entry)


def longest_word(entry):
    """Return the number of characters of the longest word in a cell of a table."""
    return max(map(len, entry.astext().split()), default=0)


def setup(app):
    """Connect what is done to docstrings, before and after Napoleon, and to tables."""
    app.connect("doctree-read", drop_accidental_links)
    app.connect("doctree-read", draw_dashes)
    app.connect("doctree-read", mark_pictures)
    app.connect("doctree-resolved", mark_wide_tables)
    app.connect("autodoc-skip-member", skip_generated)
    app.connect("autodoc-process-docstring", literal_formulas, priority=100)
    app.connect("autodoc-process-docstring", split_attributes, priority=105)
    app.connect("autodoc-process-docstring", hide_property, priority=110)
    app.connect("autodoc-process-docstring", show_property, priority=800)
    app.connect("autodoc-process-docstring", escape_marks, priority=900)
