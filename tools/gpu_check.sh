#!/usr/bin/env bash
# Measures training on this machine's GPU, with the torch and transformers that are installed here;
# nothing is fetched. Usage: tools/gpu_check.sh PART [FILE], where PART is one of packing, cpt, profile,
# resume and full-8b. Prints its figures as JSON at its end, into FILE too where there is one.
set -euo pipefail

cd "$(dirname "$0")/.."
PYTHONPATH="platform${PYTHONPATH:+:$PYTHONPATH}" exec "${PYTHON:-python3}" tools/gpu_check.py "$@"
