#!/usr/bin/env bash
# Measures training on this machine's GPU, with the torch, transformers and peft that are installed here;
# nothing is fetched. Usage: tools/gpu_check.sh PART [FILE], where PART is one of packing, cpt,
# flash-attention, profile, full-8b, lora-8b, resume, resume-deterministic and gspo.
# Prints its figures as JSON at its end, and adds them to FILE.
set -euo pipefail

cd "$(dirname "$0")/.."
export CUBLAS_WORKSPACE_CONFIG=:4096:8 # deterministic kernels need it
PYTHONPATH="platform:tests${PYTHONPATH:+:$PYTHONPATH}" exec "${PYTHON:-python3}" tools/gpu_check.py "$@"
