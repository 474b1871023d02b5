#!/usr/bin/env python3
"""Writes comparison.json: what NumPy, SciPy and sacreBLEU make of the arithmetic of `lookback compare`.

    pip install numpy==2.4.6 scipy==1.17.1 sacrebleu==2.6.0
    python tests/golden/comparison.py

Resamples are random, and everybody draws others: intervals and p-values agree as far as so many resamples allow.
"""

import json
import random
from pathlib import Path

import numpy as np
import sacrebleu
import scipy
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from scipy.stats import bootstrap

PATH = Path(__file__).with_name("comparison.json")
WORDS = "the a dog cat house runs sees big small old new tree bird river stone walks over under and then".split()


def interval(values):
    found = bootstrap((values,), np.mean, n_resamples=20000, confidence_level=0.95, method="percentile", rng=np.random.default_rng(1))
    return [float(found.confidence_interval.low), float(found.confidence_interval.high)]


def paired(baseline, system, references):
    """P-value and scores of sacreBLEU's paired bootstrap."""
    named = [("baseline", baseline), ("system", system)]
    _, scores = PairedTest(named, {"BLEU": BLEU()}, [references], test_type="bs", n_samples=2000)()
    one, other = scores["BLEU"]
    return {"baseline": one.score, "system": other.score, "p_value": other.p_value, "half_width": other.ci}


def corpora(rng, n, damage):
    references, first, second = [], [], []
    for _ in range(n):
        line = [rng.choice(WORDS) for _ in range(rng.randint(4, 14))]
        changed = lambda rate: " ".join(rng.choice(WORDS) if rng.random() < rate else word for word in line)
        references.append(" ".join(line))
        first.append(changed(0.25))
        second.append(changed(0.25 + damage))
    return references, first, second


def main():
    rng = random.Random(1)
    np_rng = np.random.default_rng(2)
    means = []
    for n, p in [(40, 0.5), (100, 0.9), (300, 0.2), (1000, 0.99)]:
        values = (np_rng.random(n) < p).astype(float)
        means.append({"values": values.astype(int).tolist(), "mean": float(values.mean()), "interval": interval(values)})
    deviations = []
    for n in [2, 3, 7]:
        values = np_rng.normal(size=n)
        deviations.append({"values": values.tolist(), "deviation": float(values.std(ddof=1))})
    fits = []
    for exponent in [0.0, 1.0, 2.0, 2.7]:
        lengths = [16, 32, 64, 128, 256]
        seconds = [3e-4 * n**exponent * float(np.exp(np_rng.normal() * 0.1)) for n in lengths]
        fits.append({"lengths": lengths, "seconds": seconds, "exponent": float(np.polyfit(np.log(lengths), np.log(seconds), 1)[0])})
    pairs = []
    for n, damage in [(200, 0.0), (200, 0.02), (200, 0.05), (300, 0.2)]:
        references, baseline, system = corpora(rng, n, damage)
        pairs.append({"references": references, "baseline": baseline, "system": system, "sacrebleu": paired(baseline, system, references)})
    versions = {"numpy": np.__version__, "scipy": scipy.__version__, "sacrebleu": sacrebleu.__version__}
    golden = {"versions": versions, "means": means, "deviations": deviations, "fits": fits, "pairs": pairs}
    PATH.write_text(json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
