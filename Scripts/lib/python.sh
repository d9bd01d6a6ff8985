# The Python side of the tests: one virtual environment with pinned packages.
# Sourced after house.sh.

# Makes .build/venv hold what the named requirement files ask for and exports
# VENCEJO_PYTHON. Quick when it does already. It only ever grows, so scripts that
# ask for different files may run at once.
need_python() {
  local venv=.build/venv lock
  export VENCEJO_PYTHON=$root/$venv/bin/python
  has_requirements "$venv" "$@" && return 0
  mkdir -p .build
  exec {lock}>.build/venv.lock
  flock "$lock"
  has_requirements "$venv" "$@" || install_requirements "$venv" "$@"
  exec {lock}>&-
}

# The packages that files ask for, one a line, sorted.
requirements() { cat "$@" | sed -E 's/[[:space:]]*(#.*)?$//; /^$/d' | LC_ALL=C sort -u; }

# has_requirements VENV FILE…
has_requirements() {
  local venv=$1
  shift
  [[ -x $venv/bin/python && -r $venv/installed ]] &&
    [[ -z $(LC_ALL=C comm -23 <(requirements "$@") "$venv/installed") ]]
}

# install_requirements VENV FILE…
install_requirements() {
  local venv=$1 python arguments=() file kept
  shift
  say "Setting up Python's packages for the tests …"
  if ! [[ -x $venv/bin/python && -r $venv/installed ]]; then
    python=$(command -v python3) || die "no 'python3' in PATH"
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
      # Debian keeps what fills a virtual environment in a package of its own.
      need_packages python3-venv
      python=/usr/bin/python3
    fi
    rm -rf "$venv"
    "$python" -m venv "$venv" >&2 || die "python could not make a virtual environment in $venv"
    : >"$venv/installed"
  fi
  for file in "$@"; do arguments+=(-r "$file"); done
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
    "${arguments[@]}" </dev/null >&2 || die "pip could not install what $* ask for"
  # Another version of a package has taken the place of the one that was there.
  kept=$(grep -vE "^($(requirements "$@" | sed -E 's/[^A-Za-z0-9_-].*//' | paste -sd '|'))([^A-Za-z0-9_-]|$)" \
    "$venv/installed" || true)
  { requirements "$@"; if [[ $kept ]]; then printf '%s\n' "$kept"; fi; } | LC_ALL=C sort -u >"$venv/installed.new"
  mv "$venv/installed.new" "$venv/installed"
}
