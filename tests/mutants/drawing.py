"""What may be changed in a file, and a draw of changes over all rooms."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

COMPARISONS: dict[type, list[str]] = {
    ast.Lt: ["<=", ">"],
    ast.LtE: ["<", ">="],
    ast.Gt: [">=", "<"],
    ast.GtE: [">", "<="],
    ast.Eq: ["!="],
    ast.NotEq: ["=="],
    ast.Is: ["is not"],
    ast.IsNot: ["is"],
    ast.In: ["not in"],
    ast.NotIn: ["in"],
}
ARITHMETIC: dict[type, str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "*",
    ast.Pow: "*",
    ast.MatMult: "*",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.BitAnd: "|",
}
OTHER_CALLS = {"max": "min", "min": "max", "any": "all", "all": "any", "maximum": "minimum"}
OTHER_CALLS |= {"minimum": "maximum", "zeros": "ones", "ones": "zeros"}
SYMMETRIC = {"max", "min", "maximum", "minimum", "isinstance", "hasattr", "hypot", "vdot"}
"""Calls whose arguments are not swapped: it would change nothing, or anyone would notice."""

NOT_OBSERVED = {"__repr__", "__str__", "_repr_html_"}
"""Methods that only describe."""

DESCRIBE = {"warn", "debug", "info", "warning", "error", "exception", "log_message"}
"""Calls whose arguments are read by people."""

IS_A_TEST = "checks.py"
"""What it has are assertions about learners: like those in tests/, they are not changed."""

DECLARED = {"__all__", "__slots__"}
NOT_CHANGED = {"strict", "help", "metavar", "stacklevel"}
"""Keywords whose values matter only to someone who makes another mistake, or to readers."""

LOOKS = {"alpha", "linewidth", "lw", "fontsize", "figsize", "dpi", "markersize", "capsize"}
LOOKS |= {"zorder", "rotation", "length", "ncols", "frameon", "linestyle", "padding", "pad_edge"}
DRAWING = {"plot", "fill_between", "axhline", "axvline", "errorbar", "annotate", "text", "grid"}
DRAWING |= {"Figure", "figure", "legend", "savefig", "tick_params", "set_title", "suptitle"}
DRAWING |= {"step", "Table", "Progress"}
"""Keywords that are the looks of pictures and tables, and the calls in which they are."""


class Change(NamedTuple):
    """Another text between two offsets of a file, and what kind of change that is."""

    start: int
    end: int
    text: str
    kind: str


class Mutant(NamedTuple):
    """A change of a file, by its path in the package; `line` is the first line that changes."""

    path: str
    line: int
    change: Change
    old: str
    new: str

    @property
    def key(self) -> str:
        """What it is recorded under."""
        return f"{self.path}:{self.line}: {self.old} -> {self.new}"


def draw(package: Path, number: int, seed: int) -> list[Mutant]:
    """Return mutants of all rooms: half of them in equal shares, half by the size of a room.

    Within a room each place that can be changed is as likely as any other, whatever the number of
    its possible changes, and is changed at most once.
    """
    rng = random.Random(seed)
    places = {room: list(places_of(files)) for room, files in rooms(package).items()}
    total = sum(map(len, places.values()))
    drawn: list[Mutant] = []
    wanted = 0.0  # of this room and those before it: rounded, these add up to `number`
    for found in places.values():
        before = round(wanted)
        wanted += number * (0.5 / len(places) + 0.5 * len(found) / total)
        for path, changes in rng.sample(found, min(len(found), round(wanted) - before)):
            drawn.append(made(package, path, rng.choice(changes)))
    return drawn


def room_of(path: str) -> str:
    """Return the room of a file: its folder, "losses", or "single files"."""
    first, slash, _ = path.partition("/")
    return first if slash else "losses" if first == "losses.py" else "single files"


def rooms(package: Path) -> dict[str, list[Path]]:
    """Return the files of each room."""
    found: dict[str, list[Path]] = {}
    for path in sorted(package.rglob("*.py")):
        if path == package / IS_A_TEST:
            continue
        found.setdefault(room_of(path.relative_to(package).as_posix()), []).append(path)
    return found


def places_of(files: list[Path]) -> Iterator[tuple[Path, list[Change]]]:
    """Yield places that can be changed, each with its possible changes."""
    for path in files:
        for changes in Places(path.read_text()).found:
            yield path, changes


def made(package: Path, path: Path, change: Change) -> Mutant:
    """Return the mutant that a change makes of a file."""
    before, after = path.read_text(), changed(path.read_text(), change)
    line = before.count("\n", 0, change.start)
    last = before.count("\n", 0, change.end) + 1
    kept = len(before.splitlines()) - last
    old = before.splitlines()[line:last]
    new = after.splitlines()[line : len(after.splitlines()) - kept]
    name = path.relative_to(package).as_posix()
    return Mutant(name, line + 1, change, shown(old), shown(new))


def shown(lines: list[str]) -> str:
    """Return lines as one."""
    return " ".join(" ".join(lines).split())


def changed(source: str, change: Change) -> str:
    """Return a source with the change made."""
    return source[: change.start] + change.text + source[change.end :]


class Places(ast.NodeVisitor):
    """All places of a source that can be changed, in `found`."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.found: list[list[Change]] = []
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines = [line.encode() for line in source.splitlines()]
        self.visit(ast.parse(source))

    # Where things are

    def _offset(self, line: int, column: int) -> int:
        """Return an offset in characters; the syntax tree counts bytes."""
        return self._starts[line - 1] + len(self._lines[line - 1][:column].decode())

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._offset(node.lineno, node.col_offset)
        return start, self._offset(node.end_lineno, node.end_col_offset)

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self.source[start:end]

    def _add(self, kind: str, *edits: tuple[tuple[int, int], str]) -> None:
        """Add a place: one span and its possible texts."""
        changes = [Change(*span, text, kind) for span, text in edits]
        self.found.append([c for c in changes if self.source[c.start : c.end] != c.text])

    def _operator(self, left: ast.AST, right: ast.AST, new: str) -> tuple[tuple[int, int], str]:
        """Return an edit of the operator between two expressions, brackets around them kept."""
        between = self._span(left)[1], self._span(right)[0]
        text = self.source[slice(*between)]
        opening = len(text.rstrip()) - len(text.rstrip().rstrip("("))
        closing = len(text.lstrip()) - len(text.lstrip().lstrip(")"))
        return between, ")" * closing + f" {new} " + "(" * opening

    # What is left as it is

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Visit defaults and the body, but neither decorators nor annotations."""
        if node.name in NOT_OBSERVED:
            return
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        for statement in node.body:
            self.visit(statement)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """Visit it as any other function."""
        self.visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Visit the body."""
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Visit the value only."""
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Leave messages as they are; `visit_If` removes guards."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave texts as they are."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """Visit what is asserted."""
        self.visit(node.test)

    def visit_keyword(self, node: ast.keyword) -> None:
        """Visit the value, unless it matters to nobody."""
        if node.arg not in NOT_CHANGED:
            self.visit(node.value)

    # What is changed

    def visit_Assign(self, node: ast.Assign) -> None:
        """Remove an assignment to a part of something; of a name, others would miss it."""
        if any(isinstance(name, ast.Name) and name.id in DECLARED for name in node.targets):
            return
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self._add("statement", (self._span(node), "pass"))
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Remove the statement, or do the opposite."""
        edits = [(self._span(node), "pass")]
        if type(node.op) in ARITHMETIC and not _is_text(node.value):
            edits.append(self._operator(node.target, node.value, f"{ARITHMETIC[type(node.op)]}="))
        self._add("statement", *edits)
        self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Remove a call that stands alone."""
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node.value, ast.Call) and _name(node.value) in DESCRIBE:
            return
        if isinstance(node.value, ast.Call | ast.Await):
            self._add("statement", (self._span(node), "pass"))
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """Take the other way, or, of a guard, never see what it guards against."""
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        test = f"not ({self._text(node.test)})"
        guards = len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and not node.orelse
        self._add("condition", (self._span(node.test), "False" if guards else test))
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Take the other value."""
        self._add("condition", (self._span(node.test), f"not ({self._text(node.test)})"))
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Move a boundary, or turn a comparison round."""
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            new = COMPARISONS[type(op)]
            self._add("comparison", *(self._operator(left, right, text) for text in new))
            left = right
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Exchange `and` and `or` of the first two."""
        new = "or" if isinstance(node.op, ast.And) else "and"
        left, right = node.values[:2]
        self._add("and, or", self._operator(left, right, new))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Leave it out."""
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            self._add("not, minus", (self._span(node), f"({self._text(node.operand)})"))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Take another operator; of a union, leave a part out."""
        if isinstance(node.op, ast.BitOr):
            parts = (node.left, node.right)
            self._add("arithmetic", *((self._span(node), f"({self._text(p)})") for p in parts))
        elif type(node.op) in ARITHMETIC and not (_is_text(node.left) or _is_text(node.right)):
            new = ARITHMETIC[type(node.op)]
            self._add("arithmetic", self._operator(node.left, node.right, new))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Add one, halve, change the sign."""
        value, span = node.value, self._span(node)
        if isinstance(value, bool):
            self._add("constant", (span, str(not value)))
        elif isinstance(value, int | float):
            texts = [f"{value + 1!r}", f"(-{self._text(node)})"] if value else ["1"]
            half = value / 2 if isinstance(value, float) else value // 2
            texts += [f"{half!r}"] if half != value else []
            self._add("constant", *((span, text) for text in texts))

    def visit_Return(self, node: ast.Return) -> None:
        """Return nothing in place of what can be asked for a truth value."""
        if node.value is None:
            return
        if isinstance(node.value, ast.Compare | ast.BoolOp):
            self._add("return value", (self._span(node.value), f"not ({self._text(node.value)})"))
        elif isinstance(node.value, ast.Call | ast.Name | ast.Attribute):
            self._add("return value", (self._span(node.value), "None"))
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        """Leave the loop."""
        self._add("statement", (self._span(node), "break"))

    def visit_Break(self, node: ast.Break) -> None:
        """Stay in the loop."""
        self._add("statement", (self._span(node), "continue"))

    def visit_Call(self, node: ast.Call) -> None:
        """Swap the first two arguments, call the opposite, move the bounds of a range."""
        name, arguments = _name(node), node.args
        if name in DESCRIBE:
            return
        if name in OTHER_CALLS:
            end = self._span(node.func)[1]
            self._add("call", ((end - len(name), end), OTHER_CALLS[name]))
        if name == "range":
            last = arguments[0] if len(arguments) == 1 else arguments[1]
            edits = [(self._span(last), f"({self._text(last)}) - 1")]
            if len(arguments) == 1:
                edits.append((self._span(last), f"1, {self._text(last)}"))
            self._add("range", *edits)
        elif len(arguments) > 1 and name not in SYMMETRIC:
            first, second = arguments[:2]
            texts = _is_text(first) and _is_text(second)
            if not (texts or any(isinstance(part, ast.Starred) for part in (first, second))):
                span = self._span(first)[0], self._span(second)[1]
                self._add("arguments", (span, f"{self._text(second)}, {self._text(first)}"))
        looks = LOOKS if name in DRAWING else set()
        for part in (node.func, *arguments, *(k for k in node.keywords if k.arg not in looks)):
            self.visit(part)


def _is_text(node: ast.expr) -> bool:
    """Return whether an operator would be that of texts or lists."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | bytes)
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)


def _name(node: ast.Call) -> str:
    """Return the last part of the name that is called."""
    func = node.func
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
