"""What a picture shows, as lines of text: for tests that pictures stay what they are."""

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.ticker import FixedLocator


def described(figure):
    """Yield what is drawn on all axes of a figure, and in its legends."""
    for ax in figure.axes:
        titles = [ax.get_title(loc=loc) for loc in ("left", "center", "right")]
        yield f"axes {'; '.join(filter(None, titles))!r}"
        for name in ("x", "y"):
            axis = getattr(ax, f"{name}axis")
            label, scale = axis.get_label().get_text(), axis.get_scale()
            fixed = not getattr(ax, f"get_autoscale{name}_on")()
            limits = numbers(getattr(ax, f"get_{name}lim")()) if fixed else ""
            locator, text_of = axis.get_major_locator(), axis.get_major_formatter()
            places = locator.locs if isinstance(locator, FixedLocator) else []
            ticks = " ".join(text_of(place, i) for i, place in enumerate(places))
            yield f"  {name}: {label!r} {scale} {limits} {ticks}".rstrip()
        for line in ax.lines:
            x, y = (np.asarray(data, dtype=float) for data in line.get_data())
            look = f"{line.get_color()} {line.get_linestyle()} {line.get_marker()}"
            yield f"  line {line.get_label()!r} {look}: {numbers(x)} | {numbers(y)}"
        for some in ax.collections:
            if isinstance(some, PathCollection):  # a scatter plot
                x, y = np.asarray(some.get_offsets(), dtype=float).reshape(-1, 2).T
                yield f"  points {some.get_label()!r}: {numbers(x)} | {numbers(y)}"
                continue
            points = [path.vertices for path in some.get_paths()]
            x, y = np.concatenate([np.ones((0, 2)), *points]).T
            yield f"  area {numbers(x)} | {numbers(y)}"
        for box in ax.patches:
            yield f"  box {numbers(box.get_extents().bounds)}"
        for text in ax.texts:
            about = f" of {numbers(text.xy)}" if hasattr(text, "xy") else ""
            yield f"  text {text.get_text()!r} at {numbers(text.get_position())}{about}"
        if ax.get_legend():
            yield f"  legend {[text.get_text() for text in ax.get_legend().get_texts()]}"
    for legend in figure.legends:
        title = legend.get_title().get_text()
        yield f"legend {title!r} {[text.get_text() for text in legend.get_texts()]}"


def numbers(values):
    """Return numbers shortly: all of a few; of many the ends, the sum and the sum of squares."""
    values = np.asarray(values, dtype=float)
    if values.size <= 4:
        return " ".join(map(short, values))
    finite = values[np.isfinite(values)]
    sums = f"sum {short(finite.sum())}, of squares {short((finite**2).sum())}"
    return f"{values.size} from {short(values[0])} to {short(values[-1])}, {sums}"


def short(number):
    """Return four digits of a number; what rounding leaves of nothing is nothing."""
    return "0" if abs(number) < 1e-9 else f"{number:.4g}"
