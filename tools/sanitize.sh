#!/usr/bin/env bash
# Builds kernels that check every index, under the address sanitizer, into an environment of their
# own, and runs the tests there. Pass files or options of pytest to run fewer.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
shift || true
here=$PWD/.wheel/sanitize
[[ -x $here/bin/python ]] || "$python" -m venv "$here"
"$here/bin/pip" install --quiet --disable-pip-version-check pytest hypothesis "setuptools>=77" cython
ODDSLIP_BUILD=checked "$here/bin/pip" install --quiet --disable-pip-version-check --no-build-isolation .
export LD_PRELOAD=$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc
mkdir -p .wheel/checked && rm -rf .wheel/checked/tests && cp -r tests .wheel/checked/tests
cd .wheel/checked
tests=("$@")
[[ ${#tests[@]} -gt 0 ]] || tests=(tests/kernels tests/contracts)
"$here/bin/python" -m pytest -q --import-mode=importlib -p no:cacheprovider "${tests[@]}"
