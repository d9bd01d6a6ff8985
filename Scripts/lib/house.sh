# What the scripts share. Sourced by bash, never run.
#
# A script prints what a person wants to read on standard output; how it got
# there goes to standard error, and nothing at all when there was nothing to do.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"

say() { printf '%s\n' "$*" >&2; }

die() {
  say "$(basename "$0"): $*"
  exit 1
}

# Debian's names for what the package links with, and for what the tests add.
build_packages=(libnghttp2-dev libssl-dev libsqlite3-dev libcurl4-openssl-dev zlib1g-dev pkg-config)
test_packages=(openssl protobuf-compiler libprotobuf-dev libprotobuf-c-dev)
peer_packages=(
  g++ make libgrpc++-dev protobuf-c-compiler protobuf-compiler-grpc nghttp2-client nghttp2-server tmux
  golang-go golang-google-grpc-dev golang-github-golang-protobuf-1-3-dev protoc-gen-go-1-3
)

# Installs those of the named Debian packages that are missing. Quick when none
# is. Where we may not install, says which command does, and stops.
need_packages() {
  command -v dpkg-query >/dev/null ||
    die "these scripts know Debian's packages only; install yours for: $*"
  local present missing=() name
  # One look at the whole database costs less than one per package.
  present=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
    sed -n 's/^installed //p' || true)
  for name in "$@"; do
    grep -qxF "$name" <<<"$present" || missing+=("$name")
  done
  ((${#missing[@]})) || return 0

  local as_root=()
  if ((EUID != 0)); then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      say "Some Debian packages are missing. Install them, then run this again:"
      say
      say "  sudo apt-get install ${missing[*]}"
      say
      exit 1
    fi
  fi
  say "Installing ${missing[*]} …"
  # The package lists are fetched only when what we have of them does not do:
  # none yet, or so old that a file has gone.
  apt_install "${missing[@]}" 2>/dev/null ||
    { as_root_apt update && apt_install "${missing[@]}"; } ||
    die "apt-get could not install ${missing[*]}; its words are above"
}

# Quiet unless it fails. Standard input may hold the console's commands: apt
# must not eat them.
as_root_apt() {
  local said
  said=$("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" \
    </dev/null 2>&1) || { say "$said"; return 1; }
}

apt_install() { as_root_apt install -y --no-install-recommends "$@"; }

need_swift() {
  command -v swift >/dev/null ||
    die "no 'swift' in PATH. Install a Swift 6.3 toolchain (swift.org/install) and add its usr/bin."
}

# A line that changes whenever the program could come out differently: every
# source file's name, size and time, the compiler, the libraries' versions.
build_state() {
  {
    find Package.swift Sources -type f -printf '%p %s %T@\n' | LC_ALL=C sort
    stat -L -c '%n %s %Y' "$(command -v swift)"
    dpkg-query -W -f '${Package} ${Version}\n' "${build_packages[@]}" 2>/dev/null || true
  } | sha256sum
}

# Builds the products named, in release, unless nothing changed since they were
# built last. Prints nothing when it succeeds.
build_release() {
  local state product stamp log
  state=$(build_state)
  for product in "$@"; do
    stamp=.build/stamps/$product
    [[ -x .build/release/$product && -r $stamp && $(<"$stamp") == "$state" ]] && continue
    say "Building $product in release: the first time takes some minutes …"
    mkdir -p .build/stamps
    log=.build/stamps/$product.log
    if ! swift build -c release --product "$product" </dev/null >"$log" 2>&1; then
      grep -E '(error|warning):' "$log" >&2 || tail -n 40 "$log" >&2
      die "the build failed; all of it is in $log"
    fi
    # The state from before the build: what was edited during it counts as new.
    printf '%s\n' "$state" >"$stamp"
  done
}
