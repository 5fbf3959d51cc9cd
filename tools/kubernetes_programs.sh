#!/usr/bin/env bash
# Builds programs of Kubernetes from Debian's own source package, once, into a folder that is kept.
# Arguments: FOLDER PROGRAM ...
set -euo pipefail

folder=$1
shift
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9

# Programs that an earlier form of this script built are built anew.
recipe=$(sha256sum "$0" | cut -d' ' -f1)
if [ "$(cat "$folder/recipe" 2>/dev/null)" != "$recipe" ]; then
  rm -f "$folder"/*.sha256
  echo "$recipe" >"$folder/recipe"
fi

built() { [ -f "$folder/$1.sha256" ] && (cd "$folder" && sha256sum --quiet -c "$1.sha256"); }

missing=()
for program in "$@"; do
  built "$program" || missing+=("$program")
done
[ ${#missing[@]} -gt 0 ] || exit 0
echo "building ${missing[*]}: some minutes, once; kept in $folder" >&2
tools/system_packages.sh go:golang-go dpkg-source:dpkg-dev rsync:rsync jq:jq \
  go-reflect2:golang-github-modern-go-reflect2-dev

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cd "$build"

# The machine's own mirror also has sources: asked in lists of our own, so that its settings stay.
mkdir -p lists/partial cache/archives/partial parts
for list in /etc/apt/sources.list.d/*.sources; do
  [ ! -f "$list" ] || sed 's/^Types: .*/Types: deb-src/' "$list" >"parts/$(basename "$list")"
done
if [ -f /etc/apt/sources.list ]; then
  sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >parts/own.list
fi
sources() {
  apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$build/parts" \
    -o Dir::State::lists="$build/lists" -o Dir::Cache="$build/cache" \
    -o APT::Sandbox::User="$(id -un)" "$@"
}
sources update
sources source kubernetes >/dev/null
cd kubernetes-*/

# Theirs breaks with a Go of today: the server would end at the first custom resource that is written.
rm -rf vendor/github.com/modern-go/reflect2
cp -rL /usr/share/gocode/src/github.com/modern-go/reflect2 vendor/github.com/modern-go/

# Theirs takes an empty text for null with a Go of today, and refuses it in custom resources.
sed -i 's/reflect.DeepEqual(reflect.Zero(reflect.TypeOf(data)), reflect.ValueOf(data))/false/' \
  vendor/k8s.io/kube-openapi/pkg/validation/validate/type.go

printf '%s\n' KUBE_GIT_COMMIT=debian KUBE_GIT_TREE_STATE=archive KUBE_GIT_VERSION=v1.20.2 \
  KUBE_GIT_MAJOR=1 KUBE_GIT_MINOR=20 >"$build/version"
export GOPATH=$PWD/.go GOCACHE=$build/go-cache CGO_ENABLED=0 GOFLAGS=-buildvcs=false
export KUBE_GIT_VERSION_FILE=$build/version
mkdir -p .go/src/k8s.io
ln -sfn ../../.. .go/src/k8s.io/kubernetes
make WHAT="${missing[*]/#/cmd/}" >"$build/log" 2>&1 || { tail -50 "$build/log" >&2; exit 1; }

for program in "${missing[@]}"; do
  install _output/local/bin/linux/*/"$program" "$folder/$program"
  (cd "$folder" && sha256sum "$program" >"$program.sha256")
done
