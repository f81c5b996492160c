#!/usr/bin/env python3
"""Makes an SVG picture of a terminal's screen.

Reads what `tmux capture-pane -e -p` prints from standard input, and prints the SVG.
usage: picture.py COLUMNS ROWS DESCRIPTION
"""
import re
import sys
import unicodedata
from html import escape

columns, rows, description = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
CELL, LINE, MARGIN, BAR = 8.43, 19, 18, 36
INK, PAPER = "#c9d1d9", "#0d1117"
COLOURS = ["#484f58", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#b1bac4"]


class Style:
    """The style that the codes of SGR (ECMA-48, section 8.3.117) have set so far."""

    def __init__(self):
        self.ink, self.isBold, self.isFaint, self.isReversed = None, False, False, False

    def apply(self, codes):
        for code in codes:
            if code == 0: self.__init__()
            elif code == 1: self.isBold = True
            elif code == 2: self.isFaint = True
            elif code == 7: self.isReversed = True
            elif code == 22: self.isBold = self.isFaint = False
            elif code == 27: self.isReversed = False
            elif 30 <= code <= 37: self.ink = COLOURS[code - 30]
            elif code == 39: self.ink = None
            elif 90 <= code <= 97: self.ink = COLOURS[code - 90]


def width(text):
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def attributes(style):
    ink = style.ink or INK
    if style.isReversed: ink = PAPER
    parts = [] if ink == INK else [f'fill="{ink}"']
    if style.isBold: parts.append('font-weight="600"')
    if style.isFaint: parts.append('opacity="0.65"')
    return "".join(" " + part for part in parts)


def place(column): return f"{MARGIN + column * CELL:.1f}"


style, shapes = Style(), []
for row, line in enumerate(sys.stdin.read().split("\n")[:rows]):
    column, baseline = 0, BAR + 16 + row * LINE
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b"):
            style.apply([int(code or 0) for code in part[2:-1].split(";")])
            continue
        text, cells = part, width(part)
        if not text: continue
        if style.isReversed:
            shapes.append(f'<rect x="{place(column)}" y="{baseline - 14}" width="{cells * CELL:.1f}" height="{LINE}"'
                          f' fill="{style.ink or INK}"/>')
        # Blanks need no text of their own.
        for word in re.finditer(r"\S+(?: \S+)*", text):
            start = column + width(text[:word.start()])
            shapes.append(f'<text x="{place(start)}" y="{baseline}" textLength="{width(word.group()) * CELL:.1f}"'
                          f' lengthAdjust="spacingAndGlyphs"{attributes(style)}>{escape(word.group())}</text>')
        column += cells

total = (2 * MARGIN + columns * CELL, BAR + rows * LINE + MARGIN)
print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{total[0]:.0f}" height="{total[1]}"'
      f' viewBox="0 0 {total[0]:.0f} {total[1]}" role="img" aria-label="{escape(description)}">')
print(f'<rect width="{total[0]:.0f}" height="{total[1]}" rx="8" fill="{PAPER}"/>')
print('<g><circle cx="20" cy="18" r="6" fill="#ff5f57"/><circle cx="40" cy="18" r="6" fill="#febc2e"/>'
      '<circle cx="60" cy="18" r="6" fill="#28c840"/></g>')
print("<g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"14\""
      f' fill="{INK}" xml:space="preserve">')
print("\n".join(shapes))
print("</g>\n</svg>")
