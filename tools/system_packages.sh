#!/usr/bin/env bash
# Installs Debian packages whose command (or header) is missing; where it may not, says how and stops.
# Arguments: COMMAND:PACKAGE ...
set -euo pipefail

# Debian keeps PostgreSQL's programs off the path, in a folder for each version.
PATH=$PATH$(printf ':%s' /usr/lib/postgresql/*/bin)

present() {
  case $1 in
    # Debian's python3 has a venv module that fails for want of ensurepip.
    venv) "$(tools/find_python.sh)" -c 'import ensurepip, venv' 2>/dev/null ;;
    Python.h)
      "$(tools/find_python.sh)" -c 'import os, sysconfig as s
raise SystemExit(not os.path.isfile(s.get_path("include") + "/Python.h"))' ;;
    # Debian's other busybox needs a C library, which an image of it alone has not got.
    busybox) command -v busybox >/dev/null && ! ldd "$(command -v busybox)" >/dev/null 2>&1 ;;
    cni) [ -x /usr/lib/cni/ptp ] ;;
    go-reflect2) [ -d /usr/share/gocode/src/github.com/modern-go/reflect2 ] ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

missing=()
for need in "$@"; do
  present "${need%%:*}" || missing+=("${need##*:}")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "missing: ${missing[*]}; run \`sudo apt-get install ${missing[*]}\` (or your system's like) and then make again" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
