#!/usr/bin/env python3
"""Exports language models for transformers, and compares what they write, and how sure they are, with what lookback says.

    pip install torch transformers
    python tests/clients/language_models.py --lookback target/release/lookback --run runs/captions-decoder-only --prompts text.txt

Each line of the file is cut after its third word, and both go on from there, the likeliest token each time, to the end of the line or
for 40 tokens. Tokens have to be the same, and log-probabilities within 0.0001.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import torch
import transformers

transformers.logging.set_verbosity_error()
N_NEW = 40
END = 2


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lookback", default="target/release/lookback")
    parser.add_argument("--run", required=True, nargs="+")
    parser.add_argument("--prompts", required=True, help="a line each")
    parser.add_argument("--lines", type=int, default=20)
    options = parser.parse_args()
    prompts = [" ".join(line.split()[:3]) for line in Path(options.prompts).read_text().splitlines()[: options.lines]]
    is_wrong = False
    for name in options.run:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "out")
            run(options.lookback, "export", "huggingface", "--run", name, "--out", str(out))
            kind = json.loads((out / "config.json").read_text())["architectures"][0]
            model, notes = getattr(transformers, kind).from_pretrained(out, output_loading_info=True)
            assert not any(notes.values()), notes
            tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(out)
            model.eval()
            differing, gap, n_tokens = 0, 0.0, 0
            for prompt in prompts:
                ids = tokenizer(prompt, return_tensors="pt").input_ids
                with torch.no_grad():
                    found = model.generate(ids, max_new_tokens=N_NEW, do_sample=False, output_logits=True, return_dict_in_generate=True)
                written = found.sequences[0, ids.shape[1] :].tolist()
                sure = [logits[0].log_softmax(-1)[token].item() for logits, token in zip(found.logits, written)]
                asked = [options.lookback, "generate", "--run", name, prompt, "--max-tokens", str(N_NEW), "--lines", "1", "--json"]
                own = json.loads(run(*asked))
                ends = written and written[-1] == END
                text = tokenizer.decode(written[:-1] if ends else written)
                same = text.rstrip("\n") == own["text"].rstrip("\n")
                differing += not same
                if not same:
                    print(f"    there {text!r}\n    here  {own['text']!r}")
                    continue
                pairs = list(zip(sure, own["token_log_probabilities"]))
                n_tokens += len(pairs)
                gap = max([gap, *(abs(a - b) for a, b in pairs)])
            print(f"{name}: {kind}, {differing} of {len(prompts)} texts differ; largest gap of {n_tokens} log-probabilities {gap:.1e}")
            is_wrong |= differing > 0 or gap > 1e-4
    raise SystemExit(is_wrong)


if __name__ == "__main__":
    main()
