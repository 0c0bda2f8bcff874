#!/usr/bin/env python3
"""Draws what a terminal showed as an SVG picture.
Called by docs/site/generated: picture.py TITLE COLUMNS <OUTPUT >PICTURE; reads text with the escape sequences of colours."""
import re
import sys
import textwrap
from xml.sax.saxutils import escape

WIDTH, HEIGHT, MARGIN, BAR = 8.0, 18, 16, 34  # of a character, of a line, around the text, of the title: pixels
STYLES = {"1": "bold", "2": "dim", "31": "red", "32": "green"}


def wrapped(line, columns):
    """A line in pieces that fit; styles do not reach beyond a line, so they are put on each piece again."""
    style = re.match(r"\s*(\x1b\[[\d;]*m)", line)
    plain = re.sub(r"\x1b\[[\d;]*m", "", line)
    if len(plain) <= columns:
        return [line]
    indent = " " * (len(plain) - len(plain.lstrip()))
    pieces = textwrap.wrap(plain, columns, subsequent_indent=indent, break_on_hyphens=False)
    return [f"{style[1]}{piece}\x1b[0m" if style else piece for piece in pieces]


def spans(line):
    text, style = "", ""
    for piece in re.split(r"(\x1b\[[\d;]*m)", line):
        if piece.startswith("\x1b["):
            style = STYLES.get(piece[2:-1], "")
        elif piece:
            text += f'<tspan class="{style}">{escape(piece)}</tspan>' if style else f"<tspan>{escape(piece)}</tspan>"
    return text


def main():
    title, columns = escape(sys.argv[1]), int(sys.argv[2])
    lines = [piece for line in sys.stdin.read().rstrip("\n").split("\n") for piece in wrapped(line, columns)]
    width, height = round(columns * WIDTH + 2 * MARGIN), BAR + len(lines) * HEIGHT + MARGIN
    print(f'''<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">
<title>{title}</title>
<style>
text {{ font: 13px "DejaVu Sans Mono", "Liberation Mono", Menlo, Consolas, monospace; fill: #d5dbe5; white-space: pre }}
.bold {{ font-weight: bold; fill: #ffffff }} .dim {{ fill: #8b97a8 }} .green {{ fill: #7ee787 }} .red {{ fill: #ff7b72 }}
</style>
<rect width="{width}" height="{height}" rx="8" fill="#161b22"/>
<circle cx="20" cy="17" r="5" fill="#ff5f57"/><circle cx="38" cy="17" r="5" fill="#febc2e"/><circle cx="56" cy="17" r="5" fill="#28c840"/>
<text x="{width / 2}" y="21" text-anchor="middle"><tspan class="dim">{title}</tspan></text>''')
    for number, line in enumerate(lines):
        if line.strip():
            print(f'<text x="{MARGIN}" y="{BAR + (number + 1) * HEIGHT - 4}" xml:space="preserve">{spans(line)}</text>')
    print("</svg>")


main()
