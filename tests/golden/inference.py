"""Golden values of `src/scoring/inference.rs`, from SciPy and statsmodels.

    pip install numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
    python tests/golden/inference.py > tests/golden/inference.json
"""

import json

import numpy as np
import scipy
import scipy.stats as st
import statsmodels
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint, proportions_ztest

rng = np.random.default_rng(7)


def welch(a, b):
    found = st.ttest_ind(b, a, equal_var=False)
    interval = found.confidence_interval(0.95)
    return {
        "a": list(a), "b": list(b), "p_value": found.pvalue, "interval": [interval.low, interval.high],
    }


cases = [
    # Two seeds each, as far apart as in a comparison that was once called significant.
    ([21.4 - 2.0, 21.4 + 2.0], [20.6 - 7.5, 20.6 + 7.5]),
    ([90.0, 91.0, 92.5], [80.0, 85.0, 81.0]),
    (list(rng.normal(50, 3, 10)), list(rng.normal(52, 1, 6))),
    (list(rng.normal(0, 1, 5)), list(rng.normal(0, 1, 5))),
]
wilson = [
    {"right": right, "n": n, "interval": list(proportion_confint(right, n, 0.05, method="wilson"))}
    for right, n in [(100, 100), (0, 100), (95, 100), (50, 100), (1, 7), (599, 600)]
]
levels = [
    {"right": right, "n": n, "level": level, "p_value": float(proportions_ztest(right, n, level, prop_var=level)[1])}
    for right, n, level in [(100, 100, 0.9), (95, 100, 0.9), (14, 14, 0.9), (30, 100, 0.9), (0, 50, 0.5)]
]
families = [[0.01, 0.04, 0.03, 0.005], [0.5, 0.6], [0.02], list(rng.uniform(0, 0.2, 9))]
holm = [{"p_values": p, "corrected": list(multipletests(p, method="holm")[1])} for p in families]
print(json.dumps({
    "versions": {"numpy": np.__version__, "scipy": scipy.__version__, "statsmodels": statsmodels.__version__},
    "welch": [welch(a, b) for a, b in cases],
    "wilson": wilson,
    "holm": holm,
    "levels": levels,
}, indent=1))
