#!/usr/bin/env bash
# Puts programs of Debian packages into a folder, for programs whose package, once installed, starts
# a service that listens on every interface. What is on the path already is left to be used.
# Arguments: FOLDER PROGRAM:PACKAGE ...
set -euo pipefail

folder=$1
shift
missing=()
for need in "$@"; do
  PATH=$PATH:$folder command -v "${need%%:*}" >/dev/null || missing+=("$need")
done
[ ${#missing[@]} -gt 0 ] || exit 0

packages=$(printf '%s\n' "${missing[@]##*:}" | sort -u)
if ! command -v apt-get >/dev/null; then
  echo "missing: ${missing[*]%%:*}; install them and then make again" >&2
  exit 1
fi
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cd "$here"
# shellcheck disable=SC2086 - one word each
fetch() { apt-get download -qq -o APT::Sandbox::User="$(id -un)" $packages; }
# A fresh machine has no lists.
fetch 2>/dev/null || { apt-get update -qq && fetch; }
for package in *.deb; do dpkg -x "$package" .; done
cd "$OLDPWD"
for need in "${missing[@]}"; do
  install -D "$(find "$here" -path "*/bin/${need%%:*}" -type f)" "$folder/${need%%:*}"
done
