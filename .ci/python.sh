#!/usr/bin/env bash
# The Python client: types, its tests and the conformance suite against the server (PLATFORM_EXECUTABLE, else the sources), with
# each Python from 3.10 that the machine has. mypy and the suite run with one of them. Needs a package index; without it, or
# without Python, it says so and passes.
set -euo pipefail
cd "$(dirname "$0")/../clients/python"

INSTALL_SECONDS=180
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints each Python once, by its version: in the path, and those of pyenv.
pythons() {
  local minor candidate
  for minor in 10 11 12 13 14; do
    for candidate in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"3.$minor".*/bin/python3; do
      if "$candidate" -c "import sys, venv; sys.exit(sys.version_info[1] != $minor)" 2> /dev/null; then
        echo "$candidate"
        break
      fi
    done
  done
}

mapfile -t found < <(pythons)
if [[ ${#found[@]} == 0 ]]; then
  echo "the Python client was not tested: there is no Python from 3.10 on"
  exit 0
fi

install() {
  "$1" -m venv "$2" && timeout "$INSTALL_SECONDS" "$2/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 15 "${@:3}"
}
if ! install "${found[0]}" "$work/first" -r requirements-dev.txt > "$work/pip.log" 2>&1; then
  echo "the Python client was not tested: $(tail -n 1 "$work/pip.log")"
  exit 0
fi

# Most of the time of each part is spent waiting.
# shellcheck source=.ci/parts.sh
source ../../.ci/parts.sh

# pandas and mypy are for the first Python; with the others, their tests are skipped.
others() {
  install "$1" "$2" $(grep -v '^\(mypy\|pandas\)' requirements-dev.txt) && "$2/bin/python" -m pytest -q -p no:cacheprovider
}

conformance() {
  cd ../..
  node_modules/.bin/bun tests/conformance/run.ts "$work/first/bin/python" clients/python/tests/adapter.py "$@"
}

part mypy "$work/first/bin/mypy" --cache-dir "$work/mypy"
part conformance conformance
part conformance-sync conformance --sync
for index in "${!found[@]}"; do
  name=$("${found[$index]}" -c 'import sys; print("python-%d.%d" % sys.version_info[:2])')
  if [[ $index == 0 ]]; then
    part "$name" "$work/first/bin/python" -m pytest -q -p no:cacheprovider
  else
    part "$name" others "${found[$index]}" "$work/$name"
  fi
done
end_parts
