#!/usr/bin/env python3
"""Exports a run for CTranslate2 and transformers, and compares what they write with what lookback writes.

    pip install torch transformers sentencepiece sacremoses ctranslate2
    python tests/clients/exports.py --lookback target/release/lookback --run runs/numbers-transformer --input text.txt --beam 4

Greedy words have to be the same line by line; so have beams where the length penalty is the same (`length_penalty_start = 0`), else
the differing lines are counted. In 8 bits they are counted too, beside those of `lookback translate --int8`.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import ctranslate2
import transformers

transformers.logging.set_verbosity_error()


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def batches(lines: list[str], n: int = 32):
    """Lines of about the same length, and where they come from."""
    order = sorted(range(len(lines)), key=lambda i: len(lines[i]))
    for start in range(0, len(order), n):
        chosen = order[start : start + n]
        yield chosen, [lines[i] for i in chosen]


def count(found: dict[int, str], expected: list[str], what: str, must_be_same: bool) -> None:
    differing = [i for i in range(len(expected)) if found[i] != expected[i]]
    print(f"{what}: {len(differing)} of {len(expected)} lines differ")
    for i in differing[:3]:
        print(f"    there {found[i]}\n    here  {expected[i]}")
    if must_be_same and differing:
        raise SystemExit(1)


def loaded(folder: Path):
    """The tokenizers of a folder: of the source, of the target, and whether their ids come with the end."""
    if (folder / "source.spm").is_file():
        tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
        return tokenizer, tokenizer
    names = dict(pad_token="<pad>", eos_token="</s>", unk_token="<unk>", bos_token="<s>")
    load = lambda name: transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / name), **names)
    source = load("tokenizer.json")
    return source, load("target_tokenizer.json") if (folder / "target_tokenizer.json").is_file() else source


def of_transformers(folder: Path, lines: list[str], n_beams: int) -> dict[int, str]:
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    model = getattr(transformers, name).from_pretrained(folder).eval()
    source, target = loaded(folder)
    found = {}
    for chosen, texts in batches(lines):
        read = source(texts, return_tensors="pt", padding=True)
        written = model.generate(input_ids=read.input_ids, attention_mask=read.attention_mask, num_beams=n_beams)
        found |= {i: target.decode(ids, skip_special_tokens=True).strip() for i, ids in zip(chosen, written)}
    return found


def of_ctranslate2(folder: Path, tokenizers: Path, lines: list[str], n_beams: int, kind: str) -> dict[int, str]:
    translator = ctranslate2.Translator(str(folder), compute_type=kind)
    source, target = loaded(tokenizers)
    found = {}
    for chosen, texts in batches(lines):
        tokens = [source.convert_ids_to_tokens(source(text).input_ids[:-1]) for text in texts]
        written = translator.translate_batch(tokens, beam_size=n_beams, length_penalty=0 if n_beams == 1 else 1, max_decoding_length=512)
        for i, result in zip(chosen, written):
            ids = target.convert_tokens_to_ids(result.hypotheses[0])
            found[i] = target.decode(ids, skip_special_tokens=True).strip()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lookback", default="target/release/lookback")
    parser.add_argument("--run", required=True)
    parser.add_argument("--input", required=True, help="a sentence a line")
    parser.add_argument("--beam", type=int, default=4)
    options = parser.parse_args()
    lines = Path(options.input).read_text().splitlines()
    program = options.lookback
    here = lambda *more: run(program, "translate", "--run", options.run, "--input", options.input, *more).splitlines()
    greedy, beam = here("--beam", "1"), here("--beam", str(options.beam))
    config = Path(options.run, "config.toml").read_text()
    is_same_penalty = "length_penalty_start = 0" in config
    with tempfile.TemporaryDirectory() as folder:
        names = {name: Path(folder, name) for name in ("hf", "ct2", "ct2-int8")}
        told = Path(folder, "hf")
        try:
            run(program, "export", "huggingface", "--run", options.run, "--out", str(told))
            count(of_transformers(told, lines, 1), greedy, "transformers, greedy", True)
            count(of_transformers(told, lines, options.beam), beam, f"transformers, beam {options.beam}", is_same_penalty)
        except SystemExit as refusal:
            if "has no place" not in str(refusal):
                raise
            print(refusal)
        run(program, "export", "ctranslate2", "--run", options.run, "--out", str(names["ct2"]))
        run(program, "export", "ctranslate2", "--run", options.run, "--out", str(names["ct2-int8"]), "--int8")
        tokenizers = names["ct2"] if (names["ct2"] / "tokenizer.json").is_file() else names["hf"]
        count(of_ctranslate2(names["ct2"], tokenizers, lines, 1, "float32"), greedy, "CTranslate2, greedy", True)
        count(of_ctranslate2(names["ct2"], tokenizers, lines, options.beam, "float32"), beam, f"CTranslate2, beam {options.beam}", False)
        count(of_ctranslate2(names["ct2-int8"], tokenizers, lines, 1, "int8"), greedy, "CTranslate2 in 8 bits, greedy", False)
        int8 = here("--beam", "1", "--int8")
        count(dict(enumerate(int8)), greedy, "lookback in 8 bits, greedy", False)


if __name__ == "__main__":
    main()
