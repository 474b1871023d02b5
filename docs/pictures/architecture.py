#!/usr/bin/env python3
"""Draws the modules of the program and the direction in which they use each other: docs/pictures/architecture.svg.

    python3 docs/pictures/architecture.py

Every module that it draws has to be there: src/NAME.rs or src/NAME/.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# From the top: who is above may use who is below.
ROWS = [
    [("cli", "one file for each command")],
    [("compare", "plan, train, measure"), ("serve", "HTTP and its page")],
    [("report", "maps, explanations, comparisons: data first, then pages and pictures")],
    [("experiment", "a run: config, data, model, training"), ("interop", "other programs' models")],
    [("decoding", "greedy, beam, sampling"), ("training", "loop, loss, Adam, checkpoints")],
    [("models", "two traits; RNN, Transformer, decoder-only, encoder-only")],
    [("layers", "attention, recurrence, mixers, positions, norms: burn modules")],
    [("ops", "operations with two bodies")],
    [("kernels", "a package: arithmetic on slices, random numbers from counters")],
    [("backend", "devices"), ("ranks", "processes"), ("files", "atomic"), ("error", "one type")],
]
BESIDE = [("data", ["corpora, tasks,", "tokenizers, batches"]), ("scoring", ["BLEU, chrF,", "accuracies,", "significance"])]
WIDTH, LEFT, GAP, ROW = 760, 540, 10, 62


def box(x, y, width, height, name, lines, kind):
    if not any((ROOT / "src" / path).exists() for path in (f"{name}.rs", name)):
        sys.exit(f"src/{name} is not there")
    centre = x + width / 2
    top = y + height / 2 - 8 * (len(lines) - 1) - 3
    words = "".join(f'<text class="n" x="{centre:g}" y="{top + 19 + 16 * i:g}">{line}</text>' for i, line in enumerate(lines))
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/><text x="{centre:g}" y="{top:g}">{name}</text>{words}'


def main():
    body, height = [], 20 + len(ROWS) * ROW
    for i, row in enumerate(ROWS):
        width = (LEFT - GAP * (len(row) - 1)) / len(row)
        for j, (name, words) in enumerate(row):
            body.append(box(20 + j * (width + GAP), 20 + i * ROW, width, ROW - GAP, name, [words], "a"))
    each = (height - 20 - GAP) / 2
    for i, (name, lines) in enumerate(BESIDE):
        body.append(box(20 + LEFT + 40, 20 + i * (each + GAP / 2), WIDTH - LEFT - 80, each - GAP / 2, name, lines, "b"))
    x = 20 + LEFT + 20
    body.append(f'<path d="M{x} 24V{height - 22}" class="l"/><path d="M{x - 5} {height - 30}l5 10 5-10" class="l"/>')
    out = Path(__file__).with_name("architecture.svg")
    out.write_text(
        f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height + 10}" width="{WIDTH}" font-family="system-ui,sans-serif" font-size="15" text-anchor="middle">
<title>The modules of the program: those above use those below; data and scoring stand beside and know no model</title>
<style>text{{fill:#1c2430;font-weight:600}}.n{{font-size:11.5px;font-weight:400;fill:#4b5563}}.a{{fill:#e8f0fa;stroke:#7a9cc6}}.b{{fill:#f6efe2;stroke:#c2a56b}}.l{{fill:none;stroke:#6b7280;stroke-width:1.5}}.g{{fill:#fff}}</style>
<rect class="g" width="100%" height="100%" rx="8"/>
{chr(10).join(body)}
</svg>
"""
    )


main()
