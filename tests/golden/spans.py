#!/usr/bin/env python3
"""Writes spans.json: the F1 of spans of random tag sequences, by seqeval.

    pip install seqeval==1.2.2
    python tests/golden/spans.py            # write the file anew
    python tests/golden/spans.py --check    # compare the file with what the library says now
"""

import json
import random
import sys
import warnings
from pathlib import Path

from seqeval.metrics import f1_score

PATH = Path(__file__).resolve().parent / "spans.json"
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "E-PER", "S-LOC", "B-X-Y", "I-X-Y"]


def cases() -> list[dict]:
    warnings.simplefilter("ignore")
    draw = random.Random(1)
    found = []
    for n_tags in (3, 5, 9):
        for n_lines in (1, 1, 1, 2, 5, 20):
            reference = [[draw.choice(TAGS[:n_tags]) for _ in range(draw.randint(1, 9))] for _ in range(n_lines)]
            # Mostly right, so that some spans are.
            change = lambda tag: draw.choice(TAGS[:n_tags]) if draw.random() < 0.3 else tag
            hypothesis = [[change(tag) for tag in line] for line in reference]
            join = lambda lines: [" ".join(line) for line in lines]
            f1 = float(f1_score(reference, hypothesis))
            found.append({"hypotheses": join(hypothesis), "references": join(reference), "f1": f1})
    return found


if __name__ == "__main__":
    if "--check" in sys.argv:
        assert json.loads(PATH.read_text()) == cases(), "the stored values differ"
        print("spans.json is what seqeval says")
    else:
        PATH.write_text(json.dumps(cases(), indent=1) + "\n")
        print(f"spans.json: {PATH.stat().st_size} bytes")
