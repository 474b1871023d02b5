"""F: from the start of a process to the first translation, and the most memory it takes: our program on a run folder, and
Python on a Hugging Face and a CTranslate2 model of the same sizes.

    cargo build --release
    python benches/peers/cold_start.py --run runs/multi30k-de-en-transformer --text 'ein Hund läuft .'

Only ours reads and writes text: the others are given ids, which spares them a tokenizer, and write as many tokens as ours
did. Their weights are random.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

HUGGING_FACE = """
import sys, torch
torch.set_num_threads(2)
from transformers import MarianMTModel
model = MarianMTModel.from_pretrained(sys.argv[1]).eval()
n = int(sys.argv[2])
with torch.no_grad():
    print(model.generate(torch.arange(5, 5 + n).unsqueeze(0), num_beams=5, max_new_tokens=n, min_new_tokens=n).tolist())
"""

CTRANSLATE2 = """
import sys, ctranslate2
translator = ctranslate2.Translator(sys.argv[1], "cpu", compute_type="float32", intra_threads=2, inter_threads=1)
n = int(sys.argv[2])
words = [[f"w{i}" for i in range(5, 5 + n)] + ["</s>"]]
print(translator.translate_batch(words, beam_size=5, max_decoding_length=n, min_decoding_length=n)[0].hypotheses[0])
"""


# A process begins with the memory of the one that started it, so a small one starts them.
LAUNCHER = """
import os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stderr=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
sys.stderr.write(f"{time.perf_counter() - start} {used.ru_maxrss / 1024} {status}")
"""


def measured(command, text=""):
    """Seconds and MiB of a process, and what it wrote."""
    launcher = [sys.executable, "-S", "-c", LAUNCHER, *command]
    done = subprocess.run(launcher, input=text, capture_output=True, text=True, check=True)
    seconds, memory, status = done.stderr.split()
    if status != "0":
        sys.exit(f"{command[0]} failed: {status}")
    return float(seconds), float(memory), done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--text", default="ein Hund läuft über eine Wiese .")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    import translating  # it brings PyTorch, which this process can wait for
    from transformers import MarianConfig, MarianMTModel

    config = tomllib.loads((options.run / "config.toml").read_text())
    model, vocabulary = config["model"], config["tokenizer"]["vocab_size"]
    d_model = model["d_model"]
    marian = MarianMTModel(
        MarianConfig(
            vocab_size=vocabulary,
            d_model=d_model,
            encoder_layers=model["n_encoder_layers"],
            decoder_layers=model["n_decoder_layers"],
            encoder_attention_heads=model["n_heads"],
            decoder_attention_heads=model["n_heads"],
            encoder_ffn_dim=model["d_feed_forward"],
            decoder_ffn_dim=model["d_feed_forward"],
            max_position_embeddings=256,
            pad_token_id=0,
            eos_token_id=2,
            forced_eos_token_id=None,
            decoder_start_token_id=1,
        )
    )
    temporary = tempfile.TemporaryDirectory()
    folder = temporary.name
    marian.save_pretrained(f"{folder}/marian")
    translating.VOCABULARY = vocabulary
    os.mkdir(f"{folder}/ctranslate2")
    translating.ctranslate(marian, f"{folder}/ctranslate2", "float32")

    ours = [str(ROOT / "target/release/lookback"), "translate", "--run", str(options.run), "--beam", "5", "--json"]
    _, _, out = measured(ours, options.text + "\n")
    n = str(len(json.loads(out)["hypotheses"][0]["tokens"]))
    sides = {
        "ours": lambda: measured(ours, options.text + "\n"),
        "ours --int8": lambda: measured([*ours, "--int8"], options.text + "\n"),
        "Hugging Face": lambda: measured([sys.executable, "-c", HUGGING_FACE, f"{folder}/marian", n]),
        "CTranslate2": lambda: measured([sys.executable, "-c", CTRANSLATE2, f"{folder}/ctranslate2", n]),
    }
    found = {label: [] for label in sides}
    for _ in range(options.rounds):
        for label, run in sides.items():
            found[label].append(run()[:2])
    print(f"{marian.num_parameters()} parameters, {n} tokens, beam 5; medians of {options.rounds}")
    for label, values in found.items():
        seconds, memory = (statistics.median(column) for column in zip(*values))
        print(f"  {label:14} {seconds:6.3f} s  {memory:6.0f} MiB")


if __name__ == "__main__":
    main()
