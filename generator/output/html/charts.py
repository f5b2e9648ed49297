"""Bar charts as inline SVG, by pygal: no script, no style of their own, the same bytes for the same numbers.

`report.css` styles them; their shades differ in grey, and bars show their values. Each is drawn twice, and on a phone
the narrow one is shown.
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from xml.etree import ElementTree

import pygal
from markupsafe import Markup
from pygal.graph.horizontal import HorizontalGraph
from pygal.style import Style

_FONT, _BAR = 12, 20
_WIDTHS = {620: (46, 1.12), 360: (28, 1.3)}  # the most characters of a label, and the room for values, in longest bars
_MARGIN, _LEGEND_ROW = 8, 22
_LEGENDS, _LEGEND = 4, 66 / 620  # at most so many names, and characters for the width, beside each other below a chart
_STYLE = Style(**{f"{part}_font_size": _FONT for part in ("label", "major_label", "value", "legend")})
# Scripts, styles, tooltips and comments of pygal's.
_UNWANTED = {"defs", "desc", "title", "script", "style"}

Series = Mapping[str, Sequence[float | None]]


def bars(title: str, rows: Sequence[str], series: Series, form: Callable[[float], str]) -> Markup:
    """Return horizontal bars, for each row one of each series; empty without rows."""
    return Markup().join(_bars(width, title, rows, series, form) for width in _WIDTHS)


def _bars(width: int, title: str, rows: Sequence[str], series: Series, form: Callable[[float], str]) -> Markup:
    height = 24 + len(rows) * (len(series) * _BAR + 10) + (30 if len(series) > 1 else 0)
    return _render(pygal.HorizontalBar(**_settings(height, width, series, form)), title, rows, series)


def stacks(
    title: str, rows: Sequence[str], series: Series, form: Callable[[float], str], *, values: bool = False
) -> Markup:
    """Return horizontal bars, for each row one that is made of all series; empty without rows.

    Args:
        values: print them, where each row has only one.
    """
    more = {} if values else {"print_values": False, "range": None, "show_x_labels": True}
    more["show_legend"] = all(any(value is not None for value in found) for found in series.values())
    height = (74 if values else 92) + len(rows) * (_BAR + 8)
    charts = (pygal.HorizontalStackedBar(**(_settings(height, width, series, form) | more)) for width in _WIDTHS)
    return Markup().join(_render(chart, title, rows, series) for chart in charts)


def columns(title: str, bins: Sequence[str], series: Series, form: Callable[[float], str]) -> Markup:
    """Return columns, for each bin one of each series, with values while they have room; empty without bins.

    On a phone they are bars.
    """
    wide, narrow = _WIDTHS
    settings = _settings(210, wide, series, form) | {"show_x_labels": True, "show_y_labels": False}
    settings["print_values"] = len(series) <= 2
    return _render(pygal.Bar(**settings), title, bins, series) + _bars(narrow, title, bins, series, form)


def _settings(height: int, width: int, series: Series, form: Callable[[float], str]) -> dict[str, object]:
    most = max((value for values in series.values() for value in values if value), default=1)
    characters, room = _WIDTHS[width]
    longest = min(max(map(len, series), default=0), characters)
    legend_rows = ceil(len(series) / max(1, min(_LEGENDS, int(_LEGEND * width) // (longest + 4)))) or 1
    names = ceil(len(series) / legend_rows) or 1
    return {
        "style": _STYLE,
        "js": [],
        "css": [],
        "width": width,
        "height": height + _LEGEND_ROW * (legend_rows - 1),
        "margin": _MARGIN,
        "margin_bottom": _MARGIN + _LEGEND_ROW * (legend_rows - len(series) // names),  # pygal counts full rows alone
        "spacing": 6,
        "range": (0, most * room),
        "formatter": form,
        "value_formatter": form,
        "print_values": True,
        "print_values_position": "top",
        "show_legend": len(series) > 1,
        "legend_at_bottom": True,
        "legend_at_bottom_columns": names,
        "truncate_legend": characters,
        "truncate_label": characters,
        "show_y_guides": False,
        "show_x_guides": False,
        "show_x_labels": False,
    }


def _render(chart: pygal.Graph, title: str, labels: Sequence[str], series: Series) -> Markup:
    if not labels:
        return Markup()
    width = chart.config.width
    most, _ = _WIDTHS[width]
    step = -1 if isinstance(chart, HorizontalGraph) else 1  # these are drawn from the bottom up
    chart.x_labels = [label if len(label) <= most else f"{label[: most - 1]}…" for label in labels[::step]]
    for name, values in series.items():
        chart.add(name, values[::step])
    svg = chart.render_tree()
    # All of them first: removing while iterating skips some where pygal uses lxml, as it does if that is installed.
    for parent, child in [(element, child) for element in svg.iter() for child in element]:
        local = child.tag.rpartition("}")[2] if isinstance(child.tag, str) else "style"
        if local in _UNWANTED or "tooltip-overlay" in child.get("class", ""):
            parent.remove(child)
    for group in svg.iter():
        for name in ("id", "style"):
            group.attrib.pop(name, None)
    svg.set("role", "img")
    svg.set("aria-label", title)
    svg.set("width", str(width))
    svg.set("class", f"pygal-chart {'wide' if width == max(_WIDTHS) else 'narrow'}")
    return Markup(ElementTree.tostring(svg, encoding="unicode"))
