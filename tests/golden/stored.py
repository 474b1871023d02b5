"""Writes or checks the file of one of the scripts beside this one."""

import json
import sys
from collections.abc import Callable
from pathlib import Path


def write_or_check(name: str, make: Callable[[], None], values: Callable[[], dict]) -> None:
    """Makes the model and writes what the libraries say of it; with --check compares the file with that."""
    path = Path(__file__).resolve().parent / name
    if "--check" in sys.argv:
        stored, found = json.loads(path.read_text()), values()
        gap = max(abs(a - b) for a, b in zip(stored.pop("logits"), found.pop("logits"), strict=True))
        assert gap < 1e-8, f"logits differ by {gap}"
        assert stored == found, "something but the logits differs"
        print(f"{name} is what the libraries say")
    else:
        make()
        path.write_text(json.dumps(values(), ensure_ascii=False) + "\n")
        print(f"{name}: {path.stat().st_size} bytes")
