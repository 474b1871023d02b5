#!/usr/bin/env bash
# Fuzzes one target for so many seconds, or every target for a minute.
set -euo pipefail
cd "$(dirname "$0")"
export RUSTC_BOOTSTRAP=1
targets=(config corpus tokenizer_file weights run_folder results source_text shard)
[[ $# -ge 1 ]] && targets=("$1")
for target in "${targets[@]}"; do
    mkdir -p "corpus/$target"
    # Inputs beyond 64 KiB and runs beyond 20 seconds or 2 GiB are faults of their own kind.
    cargo fuzz run --fuzz-dir . -s none "$target" "corpus/$target" "seeds/$target" -- \
        -max_total_time="${2:-60}" -max_len=65536 -timeout=20 -rss_limit_mb=2048 -print_final_stats=1
done
