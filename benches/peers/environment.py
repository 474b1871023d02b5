"""What has to be in the environment before PyTorch and CTranslate2 are loaded. `start` starts the script once more with

- tcmalloc, where it is installed (Debian: libtcmalloc-minimal4): it makes PyTorch up to a quarter faster;
- with `--simd v3`, the instructions of both sides held to AVX2, as on a machine without AVX-512. Ours also uses AVX-VNNI then, for sums of
  8 bits, where the processor has it.
"""

import argparse
import glob
import os
import sys

# What each library calls it.
CAPS = {
    "v3": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "CT2_FORCE_CPU_ISA": "AVX2",
    },
    "auto": {},
}
STARTED = "LOOKBACK_PEERS"

# Every script that calls `start` takes these.
options = argparse.ArgumentParser(add_help=False)
options.add_argument("--simd", choices=CAPS, default="auto", help="instructions of both sides")


def simd():
    return os.environ.get(STARTED, "auto")


def start():
    wanted = options.parse_known_args()[0].simd
    if os.environ.get(STARTED) != wanted:
        found = sorted(glob.glob("/usr/lib/*/libtcmalloc_minimal.so*") + glob.glob("/usr/lib/*/libtcmalloc.so*"))
        preload = {"LD_PRELOAD": found[0]} if found and "LD_PRELOAD" not in os.environ else {}
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | CAPS[wanted] | preload | {STARTED: wanted})
    print(f"allocator of the others: {os.environ.get('LD_PRELOAD', 'that of the system')}; instructions: {wanted}")


def of_ours():
    """The environment of our program: its own allocator, which keeps memory as the program has it when it starts itself."""
    own = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return own | {"MIMALLOC_PURGE_DELAY": "-1", "MIMALLOC_ARENA_RESERVE": "4GiB"}
