#!/usr/bin/env bash
# Prints the Python that the virtual environment is made from: python3.11, or a later python3.
set -euo pipefail

for python in python3.11 python3; do
  if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    command -v "$python"
    exit
  fi
done
echo "agentworld needs Python 3.11 or later, and neither python3.11 nor python3 is one; install it." >&2
exit 1
