#!/usr/bin/env bash
# Builds the part of a Kubernetes of today that serves custom resources, apiextensions-apiserver,
# from the Go packages of Debian sid, once, into a folder that is kept. Nothing is installed.
# Arguments: FOLDER
set -euo pipefail

folder=$1
server=apiextensions-apiserver
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9

# What an earlier form of this script built is built anew.
recipe=$(sha256sum "$0" | cut -d' ' -f1)
if [ "$(cat "$folder/recipe" 2>/dev/null)" = "$recipe" ] &&
  (cd "$folder" && sha256sum --quiet -c "$server.sha256"); then
  exit 0
fi
echo "building $server: some minutes and 3 GB, once; kept in $folder" >&2

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cd "$build"

# Asked in lists of our own, for the machine's settings stay: where its own Debian comes from, sid
# comes from too. Nothing counts as installed, so that all that is needed is named.
mkdir -p lists/partial cache/archives/partial parts debs go
touch status
ask() {
  apt-get -qq -o Dir::State::lists="$build/lists" -o Dir::State::status="$build/status" \
    -o Dir::Cache="$build/cache" -o APT::Sandbox::User="$(id -un)" "$@"
}
ask update
archive=$(ask indextargets --format '$(REPO_URI)' \
  'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | sort -u | head -n 1)
[ -n "$archive" ] || { echo "apt knows no archive of Debian to ask for sid" >&2; exit 1; }
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] $archive sid main" >parts/sid.list
of_sid() {
  ask -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$build/parts" "$@"
}
of_sid update
packages=$(of_sid -s --no-install-recommends install golang-go "golang-k8s-$server-dev" |
  awk '$1 == "Inst" && $2 ~ /^golang-.*(dev|go|src)$/ {print $2}')
# shellcheck disable=SC2086 - one word each
(cd debs && of_sid download $packages)
for package in debs/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x -C go --exclude='*_test.go' --exclude=testdata
  rm "$package"
done

export GOROOT=$build/go/usr/lib/go GOPATH=$build/go/usr/share/gocode GOCACHE=$build/go-cache
export GO111MODULE=off GOTOOLCHAIN=local GOENV=off GOFLAGS='' CGO_ENABLED=0
export XDG_CONFIG_HOME=$build  # it counts its own use there
"$GOROOT/bin/go" build -gcflags=all=-dwarf=false -ldflags='-s -w' -o "$server" "k8s.io/$server" \
  >log 2>&1 || { tail -50 log >&2; exit 1; }

install "$server" "$folder/$server"
(cd "$folder" && sha256sum "$server" >"$server.sha256")
echo "$recipe" >"$folder/recipe"
