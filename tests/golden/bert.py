#!/usr/bin/env python3
"""Writes bert/ and bert.json: a small BERT with random weights as transformers saves it, and what transformers makes of it.

    pip install torch==2.15.0 numpy==2.4.6 transformers==5.23.0
    python tests/golden/bert.py            # write the files anew
    python tests/golden/bert.py --check    # compare bert.json with what the libraries say of the stored folder now

bert/ is a folder of `save_pretrained` of BertForMaskedLM: config.json, model.safetensors and tokenizer.json, word pieces trained
on the lines below. bert.json has token ids of awkward texts, the logits of a text in 64 bits, and the likeliest words for hidden
ones.
"""

from pathlib import Path

import torch
from tokenizers import BertWordPieceTokenizer
from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

from stored import write_or_check

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "bert"
LINES = [
    "the old dog looks back at the lighthouse, and the lighthouse looks back at the dog",
    "one hundred and twenty-one sailors don't count the waves; they'll count the stars",
    "when the tide goes out, the harbour is a street of mud where boats lie on their sides",
    "a model that attends looks back; a model that does not has to remember",
]
TEXTS = [
    "the dog",
    "The DOG looks!",
    "  two  spaces,\tand a tab ",
    "they'll don't twenty-one",
    "remembering lighthouses xylophone",
    "naïve café — 漢字, 😀 and \u200b nothing",
    "sailor" * 30,
    "the [MASK] looks back",
    "Is it [MASK], or [MASK]?",
    "(the)[MASK].dog",
]
MASKED = ["the [MASK] looks back at the [MASK]", "when the [MASK] goes out", "[MASK] stars", "count [MASK] waves [MASK]"]


def make() -> None:
    tokenizer = BertWordPieceTokenizer(lowercase=True)
    tokenizer.train_from_iterator(LINES, vocab_size=130, min_frequency=1, show_progress=False)
    fast = BertTokenizerFast(tokenizer_object=tokenizer._tokenizer, do_lower_case=True)
    torch.manual_seed(5)
    config = BertConfig(
        vocab_size=len(fast),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=40,
        initializer_range=0.4,
    )
    model = BertForMaskedLM(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Large differences between embeddings, so that answers depend on the text.
            if "word_embeddings" in name:
                parameter.mul_(4)
            elif "LayerNorm" in name or name.endswith("bias"):
                parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(FOLDER)
    fast.save_pretrained(FOLDER)
    (FOLDER / "model.safetensors").chmod(0o644)
    for path in FOLDER.iterdir():
        if path.name not in ("config.json", "model.safetensors", "tokenizer.json"):
            path.unlink()


def values() -> dict:
    tokenizer = BertTokenizerFast.from_pretrained(FOLDER)
    model = BertForMaskedLM.from_pretrained(FOLDER, dtype=torch.float64).eval()
    ids = tokenizer.encode(LINES[0])
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0]
    filled = []
    for text in MASKED:
        own = tokenizer.encode(text)
        with torch.no_grad():
            scores = model(torch.tensor([own])).logits[0].softmax(-1)
        places = [i for i, one in enumerate(own) if one == tokenizer.mask_token_id]
        filled.append({"text": text, "places": places, "ids": [int(scores[i].argmax()) for i in places]})
    specials = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    return {
        "specials": tokenizer.convert_tokens_to_ids(specials),
        "mask": tokenizer.mask_token_id,
        "texts": [{"text": text, "ids": tokenizer.encode(text)} for text in TEXTS],
        "ids": ids,
        "shape": list(logits.shape),
        "logits": [float(f"{value:.10g}") for value in logits.flatten().tolist()],
        "filled": filled,
    }


if __name__ == "__main__":
    write_or_check("bert.json", make, values)
