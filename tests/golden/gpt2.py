#!/usr/bin/env python3
"""Writes gpt2/ and gpt2.json: a small GPT-2 with random weights as transformers saves it, and what transformers makes of it.

    pip install torch==2.15.0 numpy==2.4.6 transformers==5.23.0
    python tests/golden/gpt2.py            # write the files anew
    python tests/golden/gpt2.py --check    # compare gpt2.json with what the libraries say of the stored folder now

gpt2/ is a folder of `save_pretrained`: config.json, model.safetensors and tokenizer.json, a byte-level BPE trained on the
lines below. gpt2.json has token ids of awkward texts, the logits of a text in 64 bits, and greedy continuations of prompts.
"""

from pathlib import Path

import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import GPT2Config, GPT2LMHeadModel, GPT2TokenizerFast

from stored import write_or_check

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "gpt2"
END = "<|endoftext|>"
LINES = [
    "the old dog looks back at the lighthouse, and the lighthouse looks back at the dog",
    "one hundred and twenty-one sailors don't count the waves; they'll count the stars",
    "when the tide goes out, the harbour is a street of mud where boats lie on their sides",
    "a model that attends looks back; a model that does not has to remember",
]
TEXTS = [
    "the dog",
    " looks back",
    "Two  spaces,\ttabs and\n\nblank lines\n",
    "   indented\n  less\nnot at all \nthe end",
    "they'll don't I'M it's",
    "naïve café — 漢字, 😀 and \u200b nothing",
    "121 + 11 = 132",
    "trailing spaces   ",
    "\n",
]
PROMPTS = ["the old dog", "when the", "a"]
N_NEW = 12


def make() -> None:
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(LINES, vocab_size=330, min_frequency=2, special_tokens=[END], show_progress=False)
    fast = GPT2TokenizerFast(tokenizer_object=tokenizer._tokenizer, bos_token=END, eos_token=END, unk_token=END)
    size = len(fast)
    end = fast.convert_tokens_to_ids(END)
    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=size, n_positions=40, n_embd=16, n_layer=2, n_head=2, bos_token_id=end, eos_token_id=end, initializer_range=0.4
    )
    model = GPT2LMHeadModel(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "ln_" in name or name.endswith("bias"):
                parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(FOLDER)
    fast.save_pretrained(FOLDER)
    for path in FOLDER.iterdir():
        if path.name not in ("config.json", "model.safetensors", "tokenizer.json"):
            path.unlink()


def values() -> dict:
    tokenizer = GPT2TokenizerFast(tokenizer_file=str(FOLDER / "tokenizer.json"))
    model = GPT2LMHeadModel.from_pretrained(FOLDER, dtype=torch.float64).eval()
    ids = tokenizer.encode(" ".join(LINES))[:30]
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0]
    greedy = []
    for prompt in PROMPTS:
        words = tokenizer.encode(prompt)
        n = len(words)
        with torch.no_grad():
            for _ in range(N_NEW):
                words.append(int(model(torch.tensor([words])).logits[0, -1].argmax()))
        greedy.append({"prompt": prompt, "ids": words, "text": tokenizer.decode(words[n:])})
    return {
        "end": model.config.eos_token_id,
        "texts": [{"text": text, "ids": tokenizer.encode(text)} for text in TEXTS],
        "ids": ids,
        "shape": list(logits.shape),
        "logits": [float(f"{value:.10g}") for value in logits.flatten().tolist()],
        "greedy": greedy,
    }


if __name__ == "__main__":
    write_or_check("gpt2.json", make, values)
