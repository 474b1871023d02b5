#!/usr/bin/env python3
"""Records a terminal as an animated SVG: runs the commands below and draws what they print, as it comes.

    python3 docs/pictures/record.py PROGRAM docs/pictures/terminal.svg

PROGRAM is the built program. It works in a temporary folder with a copy of config/, so that nothing is left behind. Training is
shown faster than it was; the title says how much. Nothing but Python is needed.
"""

import html
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from shutil import copytree

SCENES = [
    [
        "lookback train config/tour-bahdanau.toml --dashboard plain --backend flex",
        "lookback translate --run runs/tour-bahdanau 'seventy-one , ninety-seven'",
    ],
    ["lookback explain --run runs/tour-bahdanau 'seventy-one' --step 3"],
]
COLUMNS, ROWS = 108, 36
WIDTH, HEIGHT = 8.0, 17.0
# Seconds: between the letters of a command, after a command, at the end of a scene; of the longest command as it is shown.
LETTER, PAUSE, END, LONGEST = 0.035, 0.5, 4.0, 7.0
COLOURS = {
    30: "#5c6370", 31: "#e06c75", 32: "#98c379", 33: "#e5c07b", 34: "#61afef", 35: "#c678dd", 36: "#56b6c2", 37: "#d7dae0",
    90: "#8b929e", 91: "#e06c75", 92: "#98c379", 93: "#e5c07b", 94: "#61afef", 95: "#c678dd", 96: "#56b6c2", 97: "#ffffff",
}


def run(command, folder, program):
    """What a command prints: lines with the second at which each came."""
    environment = dict(os.environ, CLICOLOR_FORCE="1", COLUMNS=str(COLUMNS), PATH=f"{program}:{os.environ['PATH']}")
    start = time.monotonic()
    process = subprocess.Popen(
        command, shell=True, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    lines = [(time.monotonic() - start, cut(line.rstrip("\n"))) for line in process.stdout]
    if process.wait():
        sys.exit(f"{command}: exit code {process.returncode}\n" + "\n".join(line for _, line in lines))
    return lines


def cut(line):
    """A line without colours that is too long ends in three dots."""
    return line if "\x1b" in line or len(line) <= COLUMNS else line[: COLUMNS - 2] + " …"


def spans(line):
    """A line with terminal colours as parts of one style each, cut at the edge of the screen."""
    style, room, found = (None, False, False), COLUMNS, []
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if not code:
            if part[:room]:
                found.append((style, part[:room]))
                room -= len(part[:room])
            continue
        for number in map(int, filter(None, (code[1] or "0").split(";"))):
            colour, bold, dim = style
            if number == 0:
                style = (None, False, False)
            elif number == 1:
                style = (colour, True, dim)
            elif number == 2:
                style = (colour, bold, True)
            elif number in COLOURS:
                style = (COLOURS[number], bold, dim)
    return found


def text(row, line):
    parts, column = [], 0
    for (colour, bold, dim), content in spans(line):
        attributes = f' x="{20 + column * WIDTH:g}"'
        attributes += f' fill="{colour}"' if colour else ' fill="#8b929e"' if dim else ""
        attributes += ' font-weight="bold"' if bold else ""
        if content.strip():
            parts.append(f'<tspan{attributes} textLength="{len(content) * WIDTH:g}">{html.escape(content)}</tspan>')
        column += len(content)
    return f'<text y="{56 + row * HEIGHT:g}">{"".join(parts)}</text>'


def main():
    program, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    repository = Path(__file__).resolve().parents[2]
    scenes, now, fastest = [], 0.6, 1.0
    with tempfile.TemporaryDirectory() as folder:
        names = Path(folder) / "names"
        names.mkdir()
        (names / "lookback").symlink_to(program)
        copytree(repository / "config", Path(folder) / "config")
        for commands in SCENES:
            begin, shown = now, []
            for command in commands:
                print(command, file=sys.stderr)
                lines = run(command, folder, names)
                for i in range(1, len(command) + 1, 3):
                    shown.append((now, "command", command[:i]))
                    now += 3 * LETTER
                shown.append((now, "command", command))
                now += PAUSE
                speed = max(1.0, lines[-1][0] / LONGEST)
                fastest = max(fastest, speed)
                shown += [(now + at / speed, "line", line) for at, line in lines]
                now += lines[-1][0] / speed + PAUSE
            now += END
            scenes.append((begin, now, shown))

    style, body, n = [], [], 0

    def part(content, begin, end, stays):
        nonlocal n
        n += 1
        low, high = (100 * moment / now for moment in (begin, end))
        style.append(f"@keyframes k{n}{{0%,{low:.2f}%{{opacity:0}}{low + 0.01:.2f}%,{high - 0.01:.2f}%{{opacity:1}}{high:.2f}%,to{{opacity:0}}}}")
        body.append(f'<g class="{"s" if stays else "h"}" style="animation-name:k{n}">{content}</g>')

    for scene, (begin, end, shown) in enumerate(scenes):
        is_last = scene == len(scenes) - 1
        # The rows of the screen at every moment: a new line pushes the others up once the screen is full.
        rows = []
        for i, (at, kind, content) in enumerate(shown):
            if kind == "command" and rows and rows[-1][1] == "command":
                rows[-1] = (at, kind, content)
            else:
                rows.append((at, kind, content))
        first_lines = max(0, len(rows) - ROWS)
        row = 0
        typed = [item for item in shown if item[1] == "command"]
        for i, (at, kind, content) in enumerate(rows):
            line = f"\x1b[32m$\x1b[0m \x1b[1m{content}\x1b[0m" if kind == "command" else content
            # Lines that have left the screen at the end of the scene are not shown at all, but for the command.
            if 0 < i <= first_lines:
                continue
            if kind == "command":
                letters = [item for item in typed if content.startswith(item[2])]
                for (start, _, prefix), (stop, _, _) in zip(letters, letters[1:]):
                    part(text(row, f"\x1b[32m$\x1b[0m \x1b[1m{prefix}\x1b[0m▋"), start, stop, False)
            part(text(row, line), at, end, is_last)
            row += 1

    width, height = 40 + COLUMNS * WIDTH, 64 + ROWS * HEIGHT
    note = f"training shown {fastest:.1f} times as fast as it was" if fastest > 1 else ""
    svg = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="13">
<title>lookback: training a model with attention, translating, and one step of it number by number</title>
<style>text{{white-space:pre;fill:#d7dae0}}g{{animation-duration:{now:.1f}s;animation-iteration-count:infinite;animation-timing-function:step-end}}.h{{opacity:0}}@media (prefers-reduced-motion:reduce){{g{{animation:none}}}}
{"".join(style)}</style>
<rect width="100%" height="100%" rx="8" fill="#22252a"/>
<circle cx="20" cy="18" r="5.5" fill="#e06c75"/><circle cx="38" cy="18" r="5.5" fill="#e5c07b"/><circle cx="56" cy="18" r="5.5" fill="#98c379"/>
<text x="{width - 20:g}" y="22" text-anchor="end" style="fill:#8b929e" font-size="11">{note}</text>
{chr(10).join(body)}
</svg>
"""
    out.write_text(re.sub(r"lookback-[a-z0-9]+", "lookback", svg))
    print(f"{out}: {out.stat().st_size / 1000:.0f} kB, {now:.0f} s", file=sys.stderr)


main()
