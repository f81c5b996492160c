"""Bar charts as SVG, whose text can be selected and whose colours follow the reader's light or dark mode."""

from xml.sax.saxutils import escape, quoteattr

from goals import ROWS, judged
from report import bound, number, verdict, with_unit
from results import is_ours, median

BAR, STEP, TOP = 16, 25, 58
# Twice the goal, and more, ends at the edge.
EDGE = 2.0
STYLE = """
text { font: 13px system-ui, 'DejaVu Sans', sans-serif; fill: #1f2328; }
.title { font-size: 16px; font-weight: 600; }
.group { font-weight: 600; }
.note { fill: #59636e; font-size: 12px; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.page { fill: #ffffff; }
.ours { fill: #0969da; }
.peer { fill: #818b98; }
.later { fill-opacity: 0.4; }
.missed { fill: #bc4c00; }
.axis { stroke: #818b98; stroke-opacity: 0.5; }
.goal { stroke: #cf222e; stroke-width: 2; stroke-dasharray: 5 3; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .note { fill: #9198a1; }
  .page { fill: #0d1117; }
  .ours { fill: #4493f8; }
  .peer { fill: #7d8590; }
  .missed { fill: #f0883e; }
  .goal { stroke: #ff7b72; }
}
"""


class Chart:
    """A chart of horizontal bars, which grows downwards; names stand to the left of them, values to the right."""

    def __init__(self, title, note, left=180, bars=480, right=200):
        self.title, self.left, self.bars, self.width = title, left, bars, left + bars + right
        self.parts, self.height = [], TOP
        self._text(16, 26, title, "title")
        self._text(16, 45, note, "note")

    def _text(self, x, y, text, style):
        self.parts.append(f'<text x="{x:.0f}" y="{y:.0f}" class="{style}">{escape(text)}</text>')

    def group(self, name):
        """Begins a group with a heading."""
        self._text(16, self.height + 22, name, "group")
        self.height += STEP + 10

    def bar(self, name, parts, label, label_at_edge=False):
        """Adds a bar of parts one after the other, each a share of the width and a style."""
        self._text(self.left - 10, self.height + 13, name, "end")
        x = float(self.left)
        for share, style in parts:
            if share > 0:
                self.parts.append(f'<rect x="{x:.1f}" y="{self.height}" width="{max(share * self.bars, 1):.1f}" '
                                  f'height="{BAR}" rx="2" class="{style}"/>')
            x += share * self.bars
        self._text((self.left + self.bars if label_at_edge else x) + 8, self.height + 13, label, "plain")
        self.height += STEP

    def line(self, share, name):
        """Draws a vertical line through all bars, with its name below."""
        x = self.left + share * self.bars
        self.parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{self.height}" class="goal"/>')
        self._text(x, self.height + 16, name, "note middle")
        self.height += STEP

    def svg(self):
        """Returns the document."""
        size = f'viewBox="0 0 {self.width} {self.height + 12}" width="{self.width}" height="{self.height + 12}"'
        axis = f'<line x1="{self.left}" x2="{self.left}" y1="{TOP}" y2="{self.height}" class="axis"/>'
        page = f'<rect width="{self.width}" height="{self.height + 12}" class="page"/>'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(self.title)}>'
        return "\n".join([head, f"<style>{STYLE}</style>", page, axis, *self.parts, "</svg>", ""])


def _is_contest(cases):
    return any("synced" in run for case in cases.values() for side in case["sides"].values() for run in side)


def _bars(case, each):
    """Returns name, time and time with sync of each side, in seconds or in microseconds a file."""
    factor = 1e6 / case["files"] if each else 1
    found = [(side, median(case, side, "seconds"), median(case, side, "synced")) for side in case["sides"]]
    return [(side, plain * factor, synced * factor) for side, plain, synced in found if None not in (plain, synced)]


def contest(row, found):
    """Returns the chart of a row whose sides did the same work."""
    cases = {name: (case, "files" in case and (row.per_file or len(found["cases"]) > 1))
             for name, case in found["cases"].items()}
    bars = {name: (_bars(case, each), each) for name, (case, each) in cases.items()}
    note = "Shorter is better."
    if any(synced > plain for some, _ in bars.values() for _, plain, synced in some):
        note += " The pale part is the sync of what another tool wrote; dld ends on the disk."
    chart = Chart(f"{row.name}: {row.title}", note)
    # Cases of one unit have one scale.
    most = {each: max((synced for some, one in bars.values() if one is each for _, _, synced in some), default=0)
            for each in (True, False)}
    for name, (some, each) in bars.items():
        if not some or not most[each]:
            continue
        chart.group(f"{name}, {'µs a file' if each else 'seconds'}")
        for side, plain, synced in some:
            style, digits = "ours" if is_ours(side) else "peer", 0 if each else 2 if most[each] >= 0.1 else 4
            label = number(plain, digits) + (f" (synced {number(synced, digits)})" if synced > plain else "")
            parts = [(plain / most[each], style), ((synced - plain) / most[each], f"{style} later")]
            chart.bar(side, parts, label)
    return chart.svg()


def goals_chart(title, entries, with_rows):
    """Returns a chart of figures relative to their goals."""
    chart = Chart(title, "Relative to the goal: a bar that ends before the line reaches it.", 480, 300, 350)
    for row, goal, value in entries:
        if value is None:
            continue
        ratio = goal.ratio(value)
        wanted = bound(goal).removesuffix(f" {goal.unit}")
        label = f"{with_unit(value, goal.unit)} ({wanted})" + ("" if ratio <= 1 else f", {verdict(goal, value)}")
        share = min(ratio, EDGE) / EDGE
        name = f"{row.name}  {goal.text}" if with_rows else goal.text
        chart.bar(name, [(share, "ours" if ratio <= 1 else "missed")], label, label_at_edge=True)
    chart.line(1 / EDGE, "goal")
    return chart.svg()


def write(stored, directory):
    """Writes the charts of all rows that have runs, and the overview."""
    judgements = judged(stored)
    for row in ROWS.values():
        found = stored.get(row.name)
        entries = [entry for entry in judgements if entry[0] is row and entry[2] is not None]
        if found and _is_contest(found["cases"]):
            text = contest(row, found)
        elif entries:
            text = goals_chart(f"{row.name}: {row.title}", entries, False)
        else:
            continue
        (directory / f"{row.name.lower()}.svg").write_text(text, encoding="utf-8")
    if any(value is not None for _, _, value in judgements):
        text = goals_chart("All figures relative to their goals", judgements, True)
        (directory / "overview.svg").write_text(text, encoding="utf-8")
