"""The command line: `onebit learners`, `onebit run`, `onebit demo`."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

import onebit

try:
    import typer
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.table import Table
except ModuleNotFoundError as missing:
    sys.exit(f"the command line needs {missing.name}: pip install 'onebit[cli]'")

if TYPE_CHECKING:
    from onebit import History, Learner

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

SYNTHETIC = ("synsep", "synnonsep")
N_CLASSES = 9
"""Of the synthetic streams; a short one may not show them all."""

NOISE = 0.05
"""Share of the labels of SynNonSep that are wrong: no learner can do better in the long run."""

ONCE = ("--learner", "--stream", "--rounds", "--seed", "--classes", "--plot", "--save", "--out")
"""Options of which the last would win silently."""

NOT_SET = ("classes", "random_state")
"""Parameters that other options give."""

Seed = Annotated[int, typer.Option(min=0, help="Seed of the stream and of the learner.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and no progress.")]


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command and exit: 0 if all went well, 2 with one line on stderr if not."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = [argument.partition("=")[0] for argument in arguments]
    for option in ONCE:
        if options.count(option) > 1:
            fail(f"{option} is given {options.count(option)} times; it takes one value")
    # Typer's exceptions live in other modules in other versions of it; this name is stable.
    usage_error: Any = typer.BadParameter.__bases__[0]
    try:
        code = app(arguments or ["--help"], prog_name="onebit", standalone_mode=False)
    except usage_error as error:
        fail(error.format_message())
    except ModuleNotFoundError as error:
        sys.exit(f"this needs {error.name}: pip install 'onebit[cli]'")
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ValueError, ArithmeticError, MemoryError) as error:
        fail(str(error) or type(error).__name__)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    sys.exit(code or 0)


def fail(message: str) -> NoReturn:
    """Print an error as one line, and exit."""
    print("onebit: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(2)


def print_version(wanted: bool) -> None:
    """Print the version and exit, if that is wanted."""
    if wanted:
        print(f"onebit {onebit.__version__}")
        raise typer.Exit


@app.callback()
def before_any_command(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=print_version, help="Print the version."),
    ] = False,
) -> None:
    """Classification when the only feedback is one bit: right or wrong."""


# onebit learners


@app.command()
def learners(
    as_json: AsJson = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a table in Markdown.")
    ] = False,
) -> None:
    """List every learner, what it costs and what is proven of it."""
    found = learner_classes()
    if as_markdown:
        print(learners_as_markdown(found.values()))
        return
    if as_json:
        print(json.dumps([learner_as_json(cls) for cls in found.values()], indent=2))
        return
    # Two lines a learner: six columns side by side would not fit a terminal.
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, leading=1, padding=(0, 1, 0, 0))
    table.add_column("learner\n[dim]feedback", no_wrap=True)
    table.add_column("cost of a round\n[dim]bound on its mistakes")
    table.add_column("reference\n[dim]default parameters")
    for name, cls in found.items():
        table.add_row(
            f"[bold]{name}[/]\n[dim]{cls.feedback}",
            f"{escape(str(cls.cost))}\n[dim]{escape(str(cls.bound))}",
            f"{escape(cls.reference)}\n[dim]{escape(shown(parameters_of(cls())))}",
        )
    console = Console()
    console.print(table)
    console.print("\nd features, nnz of them not zero; K classes; T rounds.")


def learners_as_markdown(classes: Iterable[type[Learner]]) -> str:
    """Return the table of README, those that need one bit first."""
    lines = ["| learner | told | time of a round | proven | reference |", "| --- " * 5 + "|"]
    for cls in sorted(classes, key=lambda cls: cls.feedback):
        cells = (f"`{cls.__name__}`", told(cls), str(cls.cost), str(cls.bound), cls.reference)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def told(cls: type[Learner]) -> str:
    """Return what a learner is told after a round."""
    if "feedback" in cls._get_param_names():
        return "one bit or the label"
    if cls.feedback == "bandit":
        return "one bit"
    multi_class = cls().__sklearn_tags__().classifier_tags.multi_class
    return "the label" if multi_class else "the label, of two"


def learner_as_json(cls: type[Learner]) -> dict[str, Any]:
    """Return what there is to say about a learner."""
    return {
        "learner": cls.__name__,
        "feedback": cls.feedback,
        "cost": str(cls.cost),
        "bound": str(cls.bound),
        "reference": cls.reference,
        "parameters": parameters_of(cls()),
    }


def learner_classes() -> dict[str, type[Learner]]:
    """Return every learner by its name, in alphabetical order."""
    names = sorted(onebit.learners.__all__, key=str.lower)
    return {name: getattr(onebit.learners, name) for name in names}


def parameters_of(learner: Learner) -> dict[str, Any]:
    """Return the parameters that `--set` takes, in their order."""
    # `get_params` would sort them; the order of the signature tells which matter most.
    names = inspect.signature(type(learner)).parameters
    return {name: getattr(learner, name) for name in names if name not in NOT_SET}


def shown(parameters: dict[str, Any]) -> str:
    """Return parameters as `--set` takes them."""
    return ", ".join(f"{name}={value}" for name, value in parameters.items()) or "none"


# onebit run


@app.command()
def run(
    learner: Annotated[str, typer.Option(help="Name of the learner, in any case.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter, name=value. Repeatable.")
    ] = None,
    stream: Annotated[
        str,
        typer.Option(
            help="A name of onebit.streams.NAMES, or an svmlight file (also .gz, .bz2, .xz)."
        ),
    ] = "synsep",
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1, help="Rounds to play; all, but 100000 of synthetic ones, if not given."
        ),
    ] = None,
    seed: Seed = 0,
    classes: Annotated[
        str | None, typer.Option(help="All labels, a,b,c; else those of the stream.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw error against rounds, here.")] = None,
    save: Annotated[
        Path | None, typer.Option(help="Save the learner here, as safetensors.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play a learner over a stream."""
    player = make_learner(learner, set_ or [], seed)
    for path in (plot, save):
        check_writable(path)
    if plot:
        check_picture(plot)

    source = open_stream(stream, rounds, seed)
    player.set_params(classes=source.classes if classes is None else parsed_list(classes))
    with progress_bar(hidden=as_json) as bar:
        result = play_timed(player, source, bar)
    if plot:
        draw_run(plot, player, source.name, result.history)
    if save:
        player.save(save)

    if as_json:
        print(json.dumps(run_as_json(player, source, seed, result)))
        return
    print_run(player, source, seed, result)
    for what, path in (("picture", plot), ("learner", save)):
        if path:
            print(f"{what} saved to {path}")


class Stream(NamedTuple):
    """A stream, opened: `batches()` goes through it from its beginning."""

    name: str
    n_rounds: int
    classes: list[Any]
    batches: Callable[[], Iterator[tuple[Any, Any]]]
    seconds: float
    """What it took to make it, or to look through it."""


class Result(NamedTuple):
    """A run and its times in seconds: compiling, getting batches from the stream, playing."""

    history: History
    compiling: float
    reading: float
    playing: float


def make_learner(name: str, settings: list[str], seed: int) -> Learner:
    """Return the learner of a name, with parameters as in "gamma=0.01"."""
    found = {known.lower(): cls for known, cls in learner_classes().items()}
    if name.lower() not in found:
        raise ValueError(f"no learner {name!r}: there are {', '.join(learner_classes())}")
    cls = found[name.lower()]
    known = parameters_of(cls())
    given = {}
    for setting in settings:
        parameter, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"--set takes name=value; got {setting!r}")
        if parameter not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise ValueError(f"{cls.__name__} has no parameter {parameter!r}: {has}")
        given[parameter] = parsed(value)
    learner = cls(**given, random_state=seed)
    # What is out of range is better said now than after a long file was read.
    learner._validate_params()
    return learner


def parsed(text: str) -> Any:
    """Return a value given as JSON, or else the text itself."""
    try:
        return json.loads(text, parse_int=parsed_int)
    except json.JSONDecodeError:
        return text
    except RecursionError:
        raise ValueError(f"too many brackets within brackets: {text[:20]}...") from None


def parsed_int(digits: str) -> int:
    """Return an integer that is a parameter or a label."""
    if len(digits) > len(str(-(2**63))) or not -(2**63) <= int(digits) < 2**63:
        shown = digits if len(digits) < 40 else f"{digits[:10]}... of {len(digits)} digits"
        raise ValueError(f"an integer has at most 64 bits; got {shown}")
    return int(digits)


def parsed_list(text: str) -> list[Any]:
    """Return the labels in "a,b,c"."""
    return [parsed(label.strip()) for label in text.split(",")]


def open_stream(name: str, rounds: int | None, seed: int) -> Stream:
    """Return a stream by its name, or that in a file."""
    start = perf_counter()
    if name.lower() in SYNTHETIC:
        name = name.lower()
        X, y = getattr(onebit.streams, name)(rounds or 100_000, seed=seed)
        return Stream(
            name, len(y), list(range(N_CLASSES)), lambda: iter([(X, y)]), perf_counter() - start
        )
    if name.lower() in onebit.streams.NAMES:
        name = name.lower()
        X, y = onebit.streams.load(name, seed=seed)
        labels = sorted(set(y.tolist()))
        X, y = X[:rounds], y[:rounds]
        return Stream(name, len(y), labels, lambda: iter([(X, y)]), perf_counter() - start)
    if not Path(name).is_file():
        known = ", ".join(onebit.streams.NAMES)
        raise ValueError(f"no stream {name!r}: it is neither a file nor one of {known}")
    file = onebit.streams.svmlight(name)
    n_rounds = file.n_examples if rounds is None else min(rounds, file.n_examples)
    return Stream(
        name,
        n_rounds,
        file.classes.tolist(),
        lambda: first_rounds(iter(file), n_rounds),
        perf_counter() - start,
    )


def first_rounds(batches: Iterator[tuple[Any, Any]], n: int) -> Iterator[tuple[Any, Any]]:
    """Yield batches until they had `n` examples."""
    for X, y in batches:
        yield X[:n], y[:n]
        n -= min(n, len(y))
        if not n:
            return


def play_timed(learner: Learner, stream: Stream, bar: Progress) -> Result:
    """Play, and show progress; compiling and reading are timed apart."""
    from sklearn.base import clone

    name = type(learner).__name__
    task = bar.add_task(name, total=stream.n_rounds, speed="compiling", error="")
    start = perf_counter()
    X, y = next(stream.batches())
    waited = perf_counter() - start
    try:
        onebit.play(clone(learner), [(X[:2], y[:2])])
    except TypeError as error:
        raise ValueError(f"{name} does not take {shown(parameters_of(learner))}: {error}") from None
    compiling = perf_counter() - start - waited

    reading = 0.0

    def batches() -> Iterator[tuple[Any, Any]]:
        nonlocal reading
        source = stream.batches()
        while True:
            before = perf_counter()
            batch = next(source, None)
            reading += perf_counter() - before
            if batch is None:
                return
            yield batch

    def show(history: History) -> None:
        seconds = max(perf_counter() - start - reading, 1e-9)
        bar.update(
            task,
            completed=history.rounds,
            speed=f"{history.rounds / seconds:,.0f} rounds/s",
            error=f"error {100 * history.error_rate:.2f} %",
        )

    start = perf_counter()
    history = onebit.play(learner, batches(), record=False, progress=show)
    return Result(history, compiling, reading, perf_counter() - start - reading)


def progress_bar(hidden: bool) -> Progress:
    """Return a bar on stderr, so that stdout can be piped; none if stderr is not a terminal."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        TextColumn("{task.fields[error]}"),
        console=console,
        transient=True,
        refresh_per_second=4,
        disable=hidden or not console.is_terminal,
    )


def print_run(learner: Learner, stream: Stream, seed: int, result: Result) -> None:
    """Print what happened in a run."""
    history = result.history
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    table.add_row("learner", f"[bold]{type(learner).__name__}[/]")
    table.add_row("parameters", escape(shown(parameters_of(learner))))
    table.add_row("stream", escape(stream.name))
    table.add_row("seed", str(seed))
    table.add_row("rounds", f"{history.rounds:,}")
    table.add_row("error %", f"[bold]{percent(history.n_mistakes, history)}[/]")
    table.add_row("explored %", percent(history.n_explored, history))
    table.add_row("updated %", percent(history.n_updated, history))
    table.add_row("seconds", f"{result.playing:.3f}")
    table.add_row("microseconds a round", f"{microseconds(result):.3f}")
    console = Console()
    console.print(table)
    console.print(
        f"Not in these seconds: compiling {result.compiling:.2f} s, "
        f"the stream {stream.seconds + result.reading:.2f} s.",
        highlight=False,
    )


def run_as_json(learner: Learner, stream: Stream, seed: int, result: Result) -> dict[str, Any]:
    """Return what happened in a run."""
    history = result.history
    return {
        "learner": type(learner).__name__,
        "parameters": parameters_of(learner),
        "stream": stream.name,
        "seed": seed,
        "rounds": history.rounds,
        "mistakes": history.n_mistakes,
        "explored": history.n_explored,
        "updated": history.n_updated,
        "error_rate": history.error_rate,
        "seconds": result.playing,
        "microseconds_a_round": microseconds(result),
        "compile_seconds": result.compiling,
        "stream_seconds": stream.seconds + result.reading,
        "onebit": onebit.__version__,
    }


def percent(n: int, history: History) -> str:
    """Return a number of rounds as a share of all of them."""
    return f"{100 * n / history.rounds:.2f}"


def microseconds(result: Result) -> float:
    """Return the time of a round."""
    return 1e6 * result.playing / result.history.rounds


# onebit demo


@app.command()
def demo(
    rounds: Annotated[int, typer.Option(min=100, help="Rounds each learner plays.")] = 100_000,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("demo.png"),
) -> None:
    """Play every learner of linear time over SynNonSep, and draw how they learn."""
    check_writable(out)
    check_picture(out)
    stream = open_stream("synnonsep", rounds, seed)
    results: dict[str, tuple[Learner, Result]] = {}
    with progress_bar(hidden=False) as bar:
        for name, cls in learner_classes().items():
            if not cls.cost.is_linear:
                continue
            learner = cls(classes=stream.classes, random_state=seed)
            results[name] = learner, play_timed(learner, stream, bar)
    ranked = dict(sorted(results.items(), key=lambda item: item[1][1].history.error_rate))

    table = Table(
        title=f"SynNonSep with {100 * NOISE:g} % of wrong labels, {rounds:,} rounds, seed {seed}",
        title_style="",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("learner")
    table.add_column("feedback")
    for heading in ("error %", "explored %", "microseconds a round"):
        table.add_column(heading, justify="right")
    for name, (learner, result) in ranked.items():
        history = result.history
        table.add_row(
            f"[bold]{name}[/]",
            learner.feedback,
            percent(history.n_mistakes, history),
            percent(history.n_explored, history),
            f"{microseconds(result):.2f}",
        )
    Console().print(table)
    draw_demo(out, ranked)
    print(f"picture saved to {out}")


# Pictures


INK = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which the colour-blind can tell apart; yellow is too pale for a line."""

DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)))
"""With more learners than colours, the next styles of line begin."""


def check_writable(path: Path | None) -> None:
    """Raise now, not after the run, if there cannot be such a file."""
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise ValueError(f"cannot write {path}: permission denied")


def check_picture(path: Path) -> None:
    """Raise now, not after the run, if matplotlib writes no such files."""
    from matplotlib.figure import Figure

    known = Figure().canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        raise ValueError(f"cannot draw {path}: its name must end in .{', .'.join(known)}")


def draw_run(path: Path, learner: Learner, stream: str, history: History) -> None:
    """Draw error against rounds of one run."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    ax = history.plot(figure.add_subplot(), color=INK[0], linewidth=2)
    plain_percents(ax, [history])
    ax.set_title(f"{type(learner).__name__} on {stream}", loc="left")
    figure.savefig(path, dpi=150)


def draw_demo(path: Path, ranked: dict[str, tuple[Learner, Result]]) -> None:
    """Draw error against rounds of all learners, the best last and on top."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    ax = figure.add_subplot()
    histories = {name: result.history for name, (_, result) in ranked.items()}
    styles = {
        name: {"color": INK[i % len(INK)], "linestyle": DASHES[i // len(INK) % len(DASHES)]}
        for i, name in enumerate(histories)
    }
    for name in reversed(histories):
        full = ranked[name][0].feedback == "full"
        histories[name].plot(ax, linewidth=1.2 if full else 2, **styles[name])
    plain_percents(ax, list(histories.values()), lowest=100 * NOISE)
    ax.axhline(100 * NOISE, color="0.4", linewidth=1, linestyle=(0, (6, 3)))
    ax.annotate(
        f"noise floor: {100 * NOISE:g} % of the labels are wrong",
        xy=(0.01, 100 * NOISE),
        xycoords=("axes fraction", "data"),
        xytext=(0, 4),
        textcoords="offset points",
        color="0.3",
        fontsize=9,
    )
    label_ends(ax, ranked, styles)
    ax.set_title("Learning from one bit a round: SynNonSep", loc="left")
    figure.savefig(path, dpi=150)


def label_ends(ax: Any, ranked: dict[str, tuple[Learner, Result]], styles: dict[str, Any]) -> None:
    """Write each learner's name and error beside the end of its line, none over another."""
    to_axes = ax.transData + ax.transAxes.inverted()
    ends = {
        name: (result.history.rounds, 100 * result.history.error_rate)
        for name, (_, result) in ranked.items()
    }
    wanted = [float(to_axes.transform(end)[1]) for end in ends.values()]
    for (name, end), height in zip(ends.items(), spread(wanted, gap=0.045), strict=True):
        told = " (full feedback)" if ranked[name][0].feedback == "full" else ""
        ax.annotate(
            f"{name} {end[1]:.1f} %{told}",
            xy=end,
            xytext=(1.04, height),
            textcoords="axes fraction",
            verticalalignment="center",
            color=styles[name]["color"],
            fontsize=9,
            arrowprops={"arrowstyle": "-", "linewidth": 0.7, "relpos": (0, 0.5), **styles[name]},
        )


def spread(wanted: list[float], gap: float) -> list[float]:
    """Return heights in [0, 1], in the order of the wanted ones and `gap` apart, nearest to them.

    Less its share of the gaps, such a height need only not decrease: an isotonic regression.
    """
    from sklearn.isotonic import isotonic_regression

    shares = [i * gap for i in range(len(wanted))]
    least = [height - share for height, share in zip(wanted, shares, strict=True)]
    fitted = isotonic_regression(least, y_min=0.0, y_max=max(0.0, 1.0 - shares[-1]))
    return [float(height) + share for height, share in zip(fitted, shares, strict=True)]


def plain_percents(ax: Any, histories: list[History], lowest: float = 100.0) -> None:
    """Fit the axes to `lowest` and the histories from round 10 on, with ticks like 5, 10, 20."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    errors = [error for h in histories for t, error in zip(*h.curve(), strict=True) if t >= 10]
    lowest = min([lowest, *(100 * error for error in errors if error > 0)])
    ax.set_xlim(10, max(100, *(h.rounds for h in histories)))
    ax.set_ylim(0.8 * lowest, 100)
    ticks = [digit * 10.0**power for power in range(-6, 3) for digit in (1, 2, 5)]
    ax.yaxis.set_major_locator(FixedLocator([t for t in ticks if t <= 100]))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}"))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:,.0f}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


from onebit import regret_command as regret_command  # noqa: E402  (it registers its command)
