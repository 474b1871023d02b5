#!/usr/bin/env python3
"""Writes marian/ and marian.json: a small MarianMT as transformers saves it, and what transformers makes of it.

    pip install torch==2.15.0 numpy==2.4.6 transformers==5.23.0 sentencepiece==0.2.3
    python tests/golden/marian.py            # write the files anew
    python tests/golden/marian.py --check    # compare marian.json with what the libraries say of the stored folder now

marian/ is a folder of `save_pretrained` of MarianMTModel and MarianTokenizer: config.json, generation_config.json,
model.safetensors, source.spm, target.spm and vocab.json. The SentencePiece models are trained on the lines below; that of the source
has the normalization nmt_nfkc, that of the target none. pytorch_model.bin has the same parameters as `torch.save` writes them.
marian.json has token ids of awkward texts on both sides, the logits of a pair in 64 bits, and greedy and beam words.
"""

import json
import os
import tempfile
from pathlib import Path

import sentencepiece
import torch
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

from stored import write_or_check

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "marian"
SOURCE = [
    "the old dog looks back at the lighthouse, and the lighthouse looks back at the dog",
    "one hundred and twenty-one sailors don't count the waves; they'll count the stars",
    "when the tide goes out, the harbour is a street of mud where boats lie on their sides",
    "a model that attends looks back; a model that does not has to remember",
]
TARGET = [
    "der alte Hund blickt zum Leuchtturm zurück, und der Leuchtturm blickt zum Hund zurück",
    "hunderteinundzwanzig Matrosen zählen nicht die Wellen; sie zählen die Sterne",
    "bei Ebbe ist der Hafen eine Straße aus Schlamm, in der Boote auf der Seite liegen",
    "ein Modell mit Aufmerksamkeit blickt zurück; ein Modell ohne sie muss sich erinnern",
]
TEXTS = [
    "the dog",
    "The DOG looks!",
    "  two  spaces,\tand a tab ",
    "they'll don't twenty-one ......",
    "naïve cafe\u0301 — 漢字, 😀 and \u200b nothing ½ ﬁne ①",
    "lighthouse" * 12,
    ">>deu<< the dog",
    ">>xyz<< the dog",
    "der Hund zählt Sterne",
    "zu\u0308ru\u0308ck",
    "",
    "   ",
]
PAIR = (SOURCE[0], TARGET[0])
SHORT = {
    "the dog": "der Hund",
    "the lighthouse": "der Leuchtturm",
    "the stars": "die Sterne",
    "they count the waves": "sie zählen die Wellen",
    "the tide goes out": "bei Ebbe",
    "a model looks back": "ein Modell blickt zurück",
}
N_EPOCHS = 120
DECODED = [*SHORT, "the dog looks back", "the tide counts the stars", "a lighthouse", "when they count", "sailors", SOURCE[3]]


def pieces(lines: list[str], name: str, **options) -> sentencepiece.SentencePieceProcessor:
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "model")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines * 3), model_prefix=prefix, vocab_size=60, num_threads=1, minloglevel=2, **options
        )
        (FOLDER / name).write_bytes(Path(prefix + ".model").read_bytes())
    return sentencepiece.SentencePieceProcessor(model_file=str(FOLDER / name))


def make() -> None:
    FOLDER.mkdir(exist_ok=True)
    both = [
        pieces(SOURCE, "source.spm", normalization_rule_name="nmt_nfkc"),
        pieces(TARGET, "target.spm", normalization_rule_name="identity", remove_extra_whitespaces=False),
    ]
    vocabulary = {"</s>": 0, "<unk>": 1, ">>deu<<": 2}
    for processor in both:
        for i in range(processor.get_piece_size()):
            # The last pieces are left out: what is cut off but has no number is unknown.
            if not processor.is_control(i) and not processor.is_unknown(i) and i < 57:
                vocabulary.setdefault(processor.id_to_piece(i), len(vocabulary))
    vocabulary["<pad>"] = len(vocabulary)
    (FOLDER / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False) + "\n")
    torch.manual_seed(6)
    config = MarianConfig(
        vocab_size=len(vocabulary),
        d_model=18,
        encoder_layers=2,
        decoder_layers=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        activation_function="swish",
        scale_embedding=True,
        max_position_embeddings=64,
        pad_token_id=vocabulary["<pad>"],
        eos_token_id=0,
        decoder_start_token_id=vocabulary["<pad>"],
        forced_eos_token_id=0,
        dropout=0.0,
        init_std=0.35,
    )
    model = MarianMTModel(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Norms that are not the identity; words whose scores differ.
            if "layer_norm" in name or name.endswith("bias"):
                parameter.add_(0.3 * torch.randn_like(parameter))
        model.final_logits_bias.add_(0.5 * torch.randn_like(model.final_logits_bias))
    # Learnt for a moment, so that targets differ and end by themselves.
    tokenizer = MarianTokenizer(*(str(FOLDER / name) for name in ("source.spm", "target.spm", "vocab.json")))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    model.train()
    for _ in range(N_EPOCHS):
        for source, target in SHORT.items():
            read, written = tokenizer(source, return_tensors="pt"), tokenizer(text_target=target, return_tensors="pt")
            optimizer.zero_grad()
            model(**read, labels=written["input_ids"]).loss.backward()
            optimizer.step()
    model.eval()
    generation = model.generation_config
    generation.num_beams, generation.max_length, generation.length_penalty = 3, 64, 0.8
    generation.bad_words_ids = [[vocabulary["<pad>"]]]
    generation.early_stopping = True
    model.save_pretrained(FOLDER)
    torch.save(model.state_dict(), FOLDER / "pytorch_model.bin")
    for name in ("model.safetensors", "pytorch_model.bin"):
        (FOLDER / name).chmod(0o644)


def values() -> dict:
    tokenizer = MarianTokenizer.from_pretrained(FOLDER)
    model = MarianMTModel.from_pretrained(FOLDER, dtype=torch.float64, use_safetensors=True).eval()
    source = tokenizer(PAIR[0])["input_ids"]
    target = tokenizer(text_target=PAIR[1])["input_ids"]
    given = [model.config.decoder_start_token_id, *target[:-1]]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([given])).logits[0]

    def written(text: str, n_beams: int) -> dict:
        ids = torch.tensor([tokenizer(text)["input_ids"]])
        with torch.no_grad():
            out = model.generate(ids, num_beams=n_beams, do_sample=False)[0]
        text = tokenizer.decode(out, skip_special_tokens=True)
        return {"ids": out.tolist()[1:], "text": text}

    return {
        "specials": [model.config.pad_token_id, 0, tokenizer.unk_token_id],
        "texts": [
            {"text": text, "source": tokenizer(text)["input_ids"], "target": tokenizer(text_target=text)["input_ids"]}
            for text in TEXTS
        ],
        "source": source,
        "target": target,
        "shape": list(logits.shape),
        "logits": [float(f"{value:.10g}") for value in logits.flatten().tolist()],
        "decoded": [{"text": text, "greedy": written(text, 1), "beam": written(text, 3)} for text in DECODED],
    }


if __name__ == "__main__":
    write_or_check("marian.json", make, values)
