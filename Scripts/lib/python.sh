# The Python side of the tests: one virtual environment with pinned packages.
# Sourced after house.sh.

# Makes .build/venv hold what the named requirement files ask for and exports
# VENCEJO_PYTHON. Quick when it does already.
need_python() {
  local wanted python venv=.build/venv
  wanted=$(cat "$@")
  export VENCEJO_PYTHON=$root/$venv/bin/python
  if [[ -x $VENCEJO_PYTHON && -r $venv/installed && $(<"$venv/installed") == "$wanted" ]]; then
    return 0
  fi
  python=$(command -v python3) || die "no 'python3' in PATH"
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    # Debian keeps what fills a virtual environment in a package of its own.
    need_packages python3-venv
    python=/usr/bin/python3
  fi
  say "Setting up Python's packages for the tests …"
  rm -rf "$venv"
  "$python" -m venv "$venv" >&2 || die "python could not make a virtual environment in $venv"
  local arguments=() file
  for file in "$@"; do arguments+=(-r "$file"); done
  "$VENCEJO_PYTHON" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
    "${arguments[@]}" </dev/null >&2 || die "pip could not install what $* ask for"
  printf '%s\n' "$wanted" >"$venv/installed"
}
