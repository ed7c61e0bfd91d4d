#!/usr/bin/env bash
# Times the first and the second run of each command in an environment, with an empty home:
# tools/first_run.sh .wheel/clean (after `make wheel`).
set -euo pipefail
bin=$(cd "$1/bin" && pwd)
export HOME=$(mktemp -d)
trap 'rm -rf "$HOME"' EXIT
cd "$HOME"
"$bin/python" - <<'PY'
import numpy as np

rng = np.random.default_rng(0)
margins, shifts = rng.normal(size=(2000, 50)) - 3, np.linspace(0, 4, 50)
np.save("labels.npy", (rng.random(margins.shape) < 1 / (1 + np.exp(-margins))).astype(np.uint8))
np.save("unweighted.npy", (1 / (1 + np.exp(-margins))).astype(np.float32))
np.save("scores.npy", (1 / (1 + np.exp(-margins - shifts))).astype(np.float32))
np.save("weights.npy", np.exp(shifts))
PY
TIMEFORMAT="%R s wall, %U s user"
for run in first second; do
    for command in "--help" "evaluate scores.npy labels.npy -k 7" \
        "fit scores.npy labels.npy -k 7 -o repair.oddslip" \
        "diagnose scores.npy labels.npy -k 7 --weights weights.npy --unweighted unweighted.npy"; do
        printf '%-7s%-10s' "$run" "${command%% *}"
        # shellcheck disable=SC2086
        time "$bin/oddslip" $command >/dev/null
    done
done
