"""D: writing with one set of weights here, with Hugging Face's `generate` and with CTranslate2: a Marian-shaped Transformer,
d 512, 6 + 6 layers, 32,000 words, 24 words in and 30 out.

    cargo bench --profile release --bench peers --no-run
    python benches/peers/translating.py
    python benches/peers/translating.py --backend wgpu --torch-device cuda       # on a GPU: ours beside Hugging Face's

CTranslate2 is compared on CPUs alone, where it is installed. Weights are random, so that nobody stops early; all that compute in
floats have to write the same words.
"""

import environment

if __name__ == "__main__":
    environment.start()

import argparse
import random
import statistics
import sys
import tempfile
import time

import numpy as np
import torch
from transformers import MarianConfig, MarianMTModel

import models
import peers

VOCABULARY, WORDS, SENTENCES, PAD, BOS, EOS = 32_000, 30, 64, 0, 1, 2
CONFIG = {
    "kind": "transformer",
    "d_model": 512,
    "d_feed_forward": 2048,
    "n_heads": 8,
    "n_encoder_layers": 6,
    "n_decoder_layers": 6,
    "norm_position": "post",
    "tied_embeddings": "all",
    "dropout_rate": 0.1,
}


def marian(weights):
    """The same model in Hugging Face's classes."""
    config = MarianConfig(
        vocab_size=VOCABULARY,
        d_model=512,
        encoder_layers=6,
        decoder_layers=6,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        activation_function="relu",
        scale_embedding=True,
        static_position_embeddings=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        max_position_embeddings=256,
        pad_token_id=PAD,
        eos_token_id=EOS,
        forced_eos_token_id=None,
        decoder_start_token_id=BOS,
    )
    model = MarianMTModel(config).eval()
    table = models.sinusoids(256, 512)
    state = {"model.shared.weight": weights["target_embedding.weight"], "final_logits_bias": torch.zeros(1, VOCABULARY)}
    for side in ["encoder", "decoder"]:
        state[f"model.{side}.embed_tokens.weight"] = weights["target_embedding.weight"]
        state[f"model.{side}.embed_positions.weight"] = table
    state["lm_head.weight"] = weights["target_embedding.weight"]

    def take(ours, theirs, names):
        parts = len(names)
        for kind in ["weight", "bias"]:
            values = weights[f"{ours}.{kind}"]
            for name, part in zip(names, values.chunk(parts, -1)):
                state[f"{theirs}.{name}.{kind}"] = part.T.contiguous() if kind == "weight" else part.clone()

    def norm(ours, theirs):
        state[f"{theirs}.weight"], state[f"{theirs}.bias"] = weights[f"{ours}.norm.gamma"], weights[f"{ours}.norm.beta"]

    for side in ["encoder", "decoder"]:
        for i in range(6):
            ours, theirs = f"{side}.{i}", f"model.{side}.layers.{i}"
            own, residual = ("attention", "attention") if side == "encoder" else ("self_attention", "self")
            take(f"{ours}.{own}.query_key_value", f"{theirs}.self_attn", ["q_proj", "k_proj", "v_proj"])
            take(f"{ours}.{own}.output", f"{theirs}.self_attn", ["out_proj"])
            norm(f"{ours}.{residual}_residual", f"{theirs}.self_attn_layer_norm")
            if side == "decoder":
                take(f"{ours}.cross_attention.query", f"{theirs}.encoder_attn", ["q_proj"])
                take(f"{ours}.cross_attention.key_value", f"{theirs}.encoder_attn", ["k_proj", "v_proj"])
                take(f"{ours}.cross_attention.output", f"{theirs}.encoder_attn", ["out_proj"])
                norm(f"{ours}.cross_residual", f"{theirs}.encoder_attn_layer_norm")
            take(f"{ours}.feed_forward.inner", theirs, ["fc1"])
            take(f"{ours}.feed_forward.outer", theirs, ["fc2"])
            norm(f"{ours}.feed_forward_residual", f"{theirs}.final_layer_norm")
    missing, unexpected = model.load_state_dict(state, strict=False)
    if missing or unexpected:
        sys.exit(f"weights do not fit: {missing} {unexpected}")
    return model


def ctranslate(model, folder, compute_type):
    """The same model in CTranslate2."""
    import ctranslate2
    from ctranslate2.converters.transformers import MarianMTLoader

    loader = MarianMTLoader()
    spec = loader.get_model_spec(model)
    # The loader takes the last word for Marian's padding and leaves it out.
    words = [f"w{i}" for i in range(VOCABULARY - 1)]
    words[PAD], words[BOS], words[EOS] = "<pad>", "<s>", "</s>"
    loader.set_vocabulary(spec, words)
    spec.config.decoder_start_token, spec.config.bos_token, spec.config.eos_token = "<s>", "<s>", "</s>"
    spec.config.unk_token = "w3"
    spec.config.add_source_eos = False
    spec.validate()
    if compute_type == "int8":
        spec.optimize(quantization="int8")
    spec.save(folder)
    # Two workers of one thread are much faster than one of two.
    return ctranslate2.Translator(folder, "cpu", compute_type=compute_type, intra_threads=1, inter_threads=2), words


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, parents=[environment.options]
    )
    parser.add_argument("--leave-out", nargs="*", default=[], metavar="SIDE", help='such as "Hugging Face", the slowest')
    parser.add_argument("--backend", default="flex", help="of ours [flex]")
    parser.add_argument("--torch-device", default="cpu", help="of Hugging Face's: cpu or cuda [cpu]")
    options = parser.parse_args()
    on_cpu = options.backend == "flex"
    torch.set_num_threads(2)
    words = random.Random(1)
    source = [[words.randrange(4, VOCABULARY - 1) for _ in range(24)] for _ in range(SENTENCES)]
    case = {"model": CONFIG, "vocabulary": VOCABULARY, "shared": True, "source": source, "target": source}
    ours = peers.Ours(case, options.backend)
    weights = ours.weights()
    model = marian(weights).to(options.torch_device)
    inputs = torch.tensor([sentence + [EOS] for sentence in source], device=options.torch_device)

    def hugging_face(beam, batch):
        start = time.perf_counter()
        found = []
        with torch.no_grad():
            for i in range(0, SENTENCES, batch):
                part = inputs[i : i + batch]
                found += model.generate(
                    part, num_beams=beam, do_sample=False, max_new_tokens=WORDS, min_new_tokens=WORDS, length_penalty=1.0
                ).tolist()
        return time.perf_counter() - start, [row[1:] for row in found]

    translators = {}
    for compute_type in ["float32", "int8"] if on_cpu else []:
        try:
            with tempfile.TemporaryDirectory() as folder:
                # Converting changes a model, so that each gets one of its own.
                translators[compute_type] = ctranslate(marian(weights), folder, compute_type)
        except Exception as error:  # noqa: BLE001: a converter that has changed is reported and left out
            print(f"CTranslate2 {compute_type} left out: {error!r}")

    def ctranslate2_run(compute_type):
        translator, names = translators[compute_type]
        tokens = [[names[word] for word in sentence] + ["</s>"] for sentence in source]

        def run(beam, batch):
            start = time.perf_counter()
            found = translator.translate_batch(
                tokens, beam_size=beam, max_batch_size=batch, max_decoding_length=WORDS, min_decoding_length=WORDS
            )
            seconds = time.perf_counter() - start
            return seconds, [[names.index(word) for word in result.hypotheses[0]] for result in found]

        return run

    def own(weights):
        def run(beam, batch):
            found = ours.ask(f"decode {beam} {batch} {WORDS} {weights}")
            return found["seconds"], found["words"]

        return run

    sides = {"ours": own("float32")}
    sides |= {"ours int8": own("int8")} if on_cpu else {}
    sides |= {"Hugging Face": hugging_face}
    sides |= {f"CTranslate2 {compute_type}": ctranslate2_run(compute_type) for compute_type in translators}
    sides = {label: run for label, run in sides.items() if label not in options.leave_out}
    for batch, beam in [(1, 1), (32, 1), (1, 5), (32, 5)]:
        seconds, written = {label: [] for label in sides}, {}
        for label, run in sides.items():
            run(beam, 32)
        for _ in range(2):
            for label, run in sides.items():
                taken, written[label] = run(beam, batch)
                seconds[label].append(taken)
        print(f"batch {batch}, beam {beam}:")
        for label, values in seconds.items():
            median = statistics.median(values)
            n_words = sum(map(len, written[label]))
            same = np.mean([a[: len(b)] == b[: len(a)] for a, b in zip(written["ours"], written[label])])
            ratio = n_words / median / (sum(map(len, written["ours"])) / statistics.median(seconds["ours"]))
            print(f"  {label:20} {n_words / median:7.0f} words a second  {ratio:.2f} x ours  same words {same:.0%}")
        sys.stdout.flush()
    ours.close()


if __name__ == "__main__":
    main()
