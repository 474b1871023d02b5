#!/usr/bin/env python3
"""Writes scoring.json.gz: small corpora and what sacreBLEU makes of them.

    pip install sacrebleu==2.6.0
    python tests/golden/scoring.py            # write the file anew
    python tests/golden/scoring.py --check    # compare the file with what sacreBLEU says now

The corpora are random, but always the same. They are meant to be awkward rather than typical: every tokenizer rule has
to meet every kind of neighbour. `counts` and `totals` are those before smoothing.
"""

import argparse
import gzip
import json
import math
import random
import sys
from pathlib import Path

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF

PATH = Path(__file__).with_name("scoring.json.gz")
N_CORPORA = 1200
TOKENIZERS = ["13a", "intl", "char", "none"]
SMOOTHING = [("exp", None), ("floor", None), ("add-k", None), ("none", None), ("floor", 0.01), ("add-k", 0.5)]

WORDS = {
    "latin": "the a of to and cat dog House runs Über naïve café résumé straße İstanbul coöperate ÉCOLE Œuvre".split(),
    "greek": "ΟΔΥΣΣΕΥΣ ο λόγος ΣΑΣ και Ωμέγα ἄνθρωπος".split(),
    "cyrillic": "дом и Мир говорит ЩУКА ёлка".split(),
    "cjk": "你好 世界 中文，测试。 日本語 「引用」 テスト・ケース 한국어 문장".split(),
    "indic": "नमस्ते दुनिया। मैं हूँ १२३ ২০২৪ สวัสดี ชาวโลก".split(),
    "arabic": "مرحبا بالعالم، ٣٫١٤ שלום עולם؟".split(),
    "marks": ["e\u0301cole", "a\u0308\u0323", "Z\u0351\u036bA", "\u0301", "n\u0303.", "-\u0308"],
    "symbols": "😀 👩‍👩‍👧 👍🏽 🇩🇪 © ™ ± × → ≤ ∑ ° ¬ ½ ² Ⅳ ① Ⓐ".split(),
    "numbers": "1,000.50 3.14 $5.00 €20 20% 1-2 1990-2000 10:30 "
    "1. 2, ,3 .5 5.. 1.,2 -7 #1 1/2 ½. ٣. 5-".split(),
    "marked": "don't well-known - -- --- \"quoted\" 'single' “curly” «guillemets» (paren) [x] {y} "
    "a.b a,b ... , . ! ?! … e.g. U.S.A. <tag> a&b @ # ^ _ ` ~ | \\ / * + = ; : ¿Qué? ¡No! a.. .a ,,".split(),
    "entities": "&quot; &amp; &lt; &gt; &apos; &amp;lt; &quot;x&quot; & <skipped> a<skipped>b".split(),
    "spaces": ["a\u00a0b", "\u00a0", "\u3000", "x\u2009y", "p\u200bq"]
    + ["t\tt", "u\u001fv", "\u2028", "w\u0085z", "\ufeff"],
}
SEPARATORS = [" "] * 12 + ["", "", "  ", "\u00a0", "\t", "-\n", "\n"]


def sentence(rng, kinds):
    """A line of up to a dozen words of a few kinds; sometimes nothing."""
    n_words = rng.choice([0, 1, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 12])
    line = ""
    for _ in range(n_words):
        line += rng.choice(WORDS[rng.choice(kinds)]) + rng.choice(SEPARATORS)
    return line if rng.random() < 0.15 else line.strip(" ")


def changed(rng, line, kinds):
    """A line that shares something with `line`: a translation of some quality."""
    fate = rng.random()
    if fate < 0.08:
        return line
    if fate < 0.14:
        return ""
    if fate < 0.22:
        return sentence(rng, kinds)
    if fate < 0.28:
        return rng.choice([line.upper(), line.lower(), line.swapcase(), line + ".", line + " ", line.replace(" ", "")])
    words = line.split(" ")
    for _ in range(rng.randint(1, 3)):
        index = rng.randrange(len(words))
        edit = rng.randrange(4)
        if edit == 0:
            words[index] = rng.choice(WORDS[rng.choice(kinds)])
        elif edit == 1:
            words.insert(index, rng.choice(WORDS[rng.choice(kinds)]))
        elif edit == 2 and len(words) > 1:
            del words[index]
        else:
            other = rng.randrange(len(words))
            words[index], words[other] = words[other], words[index]
    return " ".join(words)


def bleu_fields(score, raw):
    return {
        "score": score.score,
        "precisions": score.precisions,
        "bp": score.bp,
        "sys_len": score.sys_len,
        "ref_len": score.ref_len,
        "counts": raw.counts,
        "totals": raw.totals,
    }


def corpus(rng, index):
    """One corpus with the scores of all tokenizers; the other choices take turns."""
    kinds = rng.sample(sorted(WORDS), rng.randint(1, 4)) + ["latin"]
    n_references = [1, 1, 1, 1, 1, 2, 3][index % 7]
    originals = [sentence(rng, kinds) for _ in range(rng.randint(1, 8))]
    if index % 25 == 0:
        hypotheses = ["zzz"] * len(originals)
    else:
        hypotheses = [changed(rng, line, kinds) for line in originals]
    references = [originals] + [[changed(rng, x, kinds) for x in originals] for _ in range(n_references - 1)]

    bleu = []
    for turn, tokenizer in enumerate(TOKENIZERS):
        choice = index + turn * 5
        method, value = SMOOTHING[choice % len(SMOOTHING)]
        settings = {
            "tokenize": tokenizer,
            "lowercase": choice // 2 % 3 == 0,
            "smooth_method": method,
            "smooth_value": value,
            "effective_order": choice % 11 == 0,
        }
        metric = BLEU(force=True, **settings)
        raw = BLEU(force=True, **{**settings, "smooth_method": "none", "smooth_value": None})
        scores = [metric.corpus_score(hypotheses, references) for metric in (metric, raw)]
        entry = {**settings, **bleu_fields(*scores)}
        entry["signature"] = str(metric.get_signature())
        entry["tokenized"] = metric.tokenizer(hypotheses[-1].rstrip())
        if (index + turn) % 3 == 0:
            settings["effective_order"] = True
            metric = BLEU(force=True, **settings)
            first = [lines[0] for lines in references]
            entry["sentence"] = metric.sentence_score(hypotheses[0], first).score
        bleu.append(entry)

    chrf = []
    for word_order in (0, 2):
        metric = CHRF(word_order=word_order, lowercase=(index + word_order) % 3 == 0)
        entry = {"word_order": word_order, "lowercase": metric.lowercase}
        entry["score"] = metric.corpus_score(hypotheses, references).score
        entry["signature"] = str(metric.get_signature())
        entry["sentence"] = metric.sentence_score(hypotheses[0], [lines[0] for lines in references]).score
        chrf.append(entry)
    return {"hypotheses": hypotheses, "references": references, "bleu": bleu, "chrf": chrf}


def differs(left, right):
    """Whether two results differ by more than the rounding of another Python's `sum`."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() != right.keys() or any(differs(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) != len(right) or any(map(differs, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return not math.isclose(left, right, rel_tol=1e-12, abs_tol=1e-300)
    return left != right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()
    rng = random.Random(20140901)
    golden = {
        "command": "python tests/golden/scoring.py",
        "sacrebleu": sacrebleu.__version__,
        "corpora": [corpus(rng, index) for index in range(N_CORPORA)],
    }
    if arguments.check:
        with gzip.open(PATH, "rt", encoding="utf-8") as file:
            if differs(json.load(file), json.loads(json.dumps(golden))):
                sys.exit(f"{PATH} is not what sacreBLEU {sacrebleu.__version__} says")
        return
    text = json.dumps(golden, ensure_ascii=False, separators=(",", ":"))
    PATH.write_bytes(gzip.compress(text.encode("utf-8"), compresslevel=9, mtime=0))


if __name__ == "__main__":
    main()
