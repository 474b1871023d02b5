#!/usr/bin/env bash
# Everything that a machine with a GPU can tell, in one table: are the gradients right, and how fast are updates and translations.
#
#     benches/gpu.sh [BACKEND]        # wgpu, vulkan, metal or cuda [wgpu]
#
# 1. `lookback devices --check` compares every model on the backend with flex.
# 2. Updates of the cases A, B base and C at 32 (benches/peers/peers.py), beside PyTorch where it is installed: on CUDA if it has it.
# 3. D: words per second of a large Transformer (benches/peers/translating.py), beside Hugging Face's generate where that is installed, and
#    sentences per second of the quick start's model.
# Half precision is not measured: no backend trains in it (docs/guides/gpu.md).
set -euo pipefail
cd "$(dirname "$0")/.."
backend=${1:-wgpu}
features=()
[[ $backend == wgpu ]] || features=(--features "$backend")
out=target/gpu-$backend.txt
mkdir -p target

cargo build --release --locked "${features[@]}"
cargo bench --profile release --locked --bench peers --no-run "${features[@]}"
lookback=target/release/lookback
{
    date +%F
    "$lookback" --version
    "$lookback" devices
    echo "== devices --check --backend $backend"
    "$lookback" devices --check --backend "$backend"

    echo "== updates: A, B base, C at 32"
    peer=$(python3 -c 'import torch; print("cuda" if torch.cuda.is_available() else "cpu")' 2>/dev/null || true)
    if python3 -c 'import torch, safetensors' 2>/dev/null; then
        python3 benches/peers/peers.py a b-base c-bahdanau-32 --backends "$backend" --modes eager --torch-device "$peer"
    else
        echo "PyTorch is not installed (pip install -r benches/peers/requirements.txt); ours alone:"
        for config in config/numbers-transformer.toml config/numbers-bahdanau.toml; do
            "$lookback" train "$config" --backend "$backend" --run "target/gpu-run-$RANDOM" --dashboard none \
                --set training.max_updates=100
        done
    fi

    echo "== translating: D"
    if python3 -c 'import torch, safetensors, transformers' 2>/dev/null; then
        python3 benches/peers/translating.py --backend "$backend" --torch-device "$peer"
    else
        echo "left out: transformers is not installed (pip install -r benches/peers/requirements.txt)"
    fi

    echo "== translating: the quick start's model"
    run=target/gpu-run
    [[ -f $run/config.toml ]] || "$lookback" train --run "$run" --backend "$backend" --dashboard none
    "$lookback" data generate reverse --out target/gpu-data --pairs 3000 >/dev/null 2>&1 || true
    for beam in 1 5; do
        start=$(date +%s.%N)
        cut -f1 target/gpu-data/test.tsv | "$lookback" translate --run "$run" --backend "$backend" --beam "$beam" >/dev/null
        lines=$(wc -l <target/gpu-data/test.tsv)
        echo "beam $beam: $(echo "$lines / ($(date +%s.%N) - $start)" | bc -l | cut -c1-8) sentences a second"
    done
} 2>&1 | tee "$out"
echo "written to $out"
