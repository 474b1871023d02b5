#!/usr/bin/env python3
"""Trains a small MarianMT with transformers, imports it, and compares tokens, greedy words and beams.

    pip install torch transformers sentencepiece sacremoses
    python tests/clients/marian.py --data FOLDER --folder /tmp/marian --lookback target/release/lookback

FOLDER holds Multi30k (`lookback data fetch multi30k --out FOLDER`). Training takes ten minutes on one core; a model that is in
`--folder` already is taken as it is. `--texts FILE...` names further texts (plain or .gz) whose tokens are compared, on both sides.
"""

import argparse
import gzip
import json
import random
import subprocess
import time
import urllib.request
from pathlib import Path

import sentencepiece
import torch
import transformers
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

transformers.logging.set_verbosity_error()


def lines_of(path: Path) -> list[str]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", "replace")
    return [line.rstrip("\r") for line in text.split("\n")]


def train(folder: Path, sources: list[str], targets: list[str], n_updates: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {"</s>": 0, "<unk>": 1}
    for side, lines in (("source", sources), ("target", targets)):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_prefix=str(folder / side), vocab_size=2000, model_type="unigram", num_threads=1, minloglevel=2
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        (folder / f"{side}.vocab").unlink()
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        for i in range(pieces.get_piece_size()):
            if not pieces.is_control(i) and not pieces.is_unknown(i):
                vocabulary.setdefault(pieces.id_to_piece(i), len(vocabulary))
    vocabulary["<pad>"] = padding = len(vocabulary)
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False))
    tokenizer = MarianTokenizer(*(str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")))
    torch.manual_seed(1)
    random.seed(1)
    config = MarianConfig(
        vocab_size=len(vocabulary), d_model=128, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=512, decoder_ffn_dim=512,
        encoder_attention_heads=4, decoder_attention_heads=4, activation_function="swish", scale_embedding=True,
        max_position_embeddings=512, pad_token_id=padding, eos_token_id=0, decoder_start_token_id=padding, forced_eos_token_id=0,
        init_std=0.06,
    )
    model = MarianMTModel(config).train()
    ids = [(tokenizer(a)["input_ids"], tokenizer(text_target=b)["input_ids"]) for a, b in zip(sources, targets)]
    order = sorted(range(len(ids)), key=lambda i: (len(ids[i][0]), i))
    batches = [order[i : i + 48] for i in range(0, len(order), 48)]
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98))

    def padded(rows: list[list[int]], value: int) -> torch.Tensor:
        n = max(map(len, rows))
        return torch.tensor([row + [value] * (n - len(row)) for row in rows])

    for update in range(n_updates):
        if update % len(batches) == 0:
            random.shuffle(batches)
        batch = batches[update % len(batches)]
        read, written = padded([ids[i][0] for i in batch], padding), padded([ids[i][1] for i in batch], -100)
        optimizer.param_groups[0]["lr"] = 2e-3 * min((update + 1) / 300, (300 / (update + 1)) ** 0.5)
        loss = model(input_ids=read, attention_mask=(read != padding).long(), labels=written).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if update % 100 == 0:
            print(f"update {update}: loss {loss.item():.3f}", flush=True)
    generation = model.generation_config
    generation.num_beams, generation.max_length, generation.bad_words_ids = 4, 128, [[padding]]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def compare_tokens(folder: Path, program: str, run: Path, paths: list[Path]) -> None:
    """Asks a server for the tokens of every line."""
    tokenizer = MarianTokenizer.from_pretrained(folder)
    vocabulary = json.loads((folder / "vocab.json").read_text())
    specials = {vocabulary["<pad>"]: 0, vocabulary["</s>"]: 2, vocabulary["<unk>"]: 3}
    ours = [specials.get(i, 4 + i - sum(special < i for special in specials)) for i in range(len(vocabulary))]
    server = subprocess.Popen([program, "serve", "--run", str(run), "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().removeprefix("listening on ").strip()
        for side, pieces in (("source", tokenizer.spm_source), ("target", tokenizer.spm_target)):
            n = n_wrong = 0
            for path in paths:
                lines = sorted(set(lines_of(path)))
                for start in range(0, len(lines), 900):
                    part = lines[start : start + 900]
                    body = json.dumps({"q": part, "side": side}).encode()
                    request = urllib.request.Request(url + "/tokenize", body, {"Content-Type": "application/json"})
                    for line, answer in zip(part, json.load(urllib.request.urlopen(request)), strict=True):
                        code, rest = tokenizer.remove_language_code(line)
                        theirs = code + pieces.encode(rest, out_type=str)
                        n += 1
                        n_wrong += answer["ids"] != [ours[vocabulary.get(piece, vocabulary["<unk>"])] for piece in theirs]
            print(f"tokens, {side}: {n_wrong} of {n} lines differ", flush=True)
    finally:
        server.terminate()


def compare_words(folder: Path, program: str, run: Path, lines: list[str]) -> None:
    tokenizer, model = MarianTokenizer.from_pretrained(folder), MarianMTModel.from_pretrained(folder).eval()
    text = folder / "in.txt"
    text.write_text("\n".join(lines) + "\n")
    order = sorted(range(len(lines)), key=lambda i: len(lines[i]))
    for n_beams in (1, 4):
        found, begun = {}, time.monotonic()
        for start in range(0, len(order), 25):
            chosen = order[start : start + 25]
            read = tokenizer([lines[i] for i in chosen], return_tensors="pt", padding=True)
            written = model.generate(**read, num_beams=n_beams, do_sample=False)
            found |= {i: tokenizer.decode(ids, skip_special_tokens=True) for i, ids in zip(chosen, written)}
        theirs_took, begun = time.monotonic() - begun, time.monotonic()
        command = [program, "translate", "--run", str(run), "--input", str(text), "--beam", str(n_beams)]
        ours = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        took = time.monotonic() - begun
        n_wrong = sum(ours[i] != found[i] for i in range(len(lines)))
        print(f"words, beam {n_beams}: {n_wrong} of {len(lines)} lines differ; {theirs_took:.1f} s there, {took:.1f} s here", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--lookback", default="target/release/lookback")
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--texts", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    if not (options.folder / "model.safetensors").is_file():
        read = lambda name: [line for line in lines_of(options.data / name) if line]
        train(options.folder, read("train.de.gz"), read("train.en.gz"), options.updates)
    run = options.folder / "run"
    if not run.exists():
        subprocess.run([options.lookback, "import", "marian", str(options.folder), "--run", str(run)], check=True)
    lines = [line for line in lines_of(options.data / "test_2016_flickr.de.gz") if line]
    compare_words(options.folder, options.lookback, run, lines)
    texts = options.texts or sorted(options.data.glob("*.gz"))
    compare_tokens(options.folder, options.lookback, run, texts)


if __name__ == "__main__":
    main()
