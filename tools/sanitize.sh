#!/usr/bin/env bash
# Builds kernels that check every index, under the address sanitizer, into a copy of this checkout,
# and runs all tests there. Pass files or options of pytest to run fewer.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath -s "${1:-.venv/bin/python}")
shift || true
export ODDSLIP_DATA=${ODDSLIP_DATA:-$PWD/../shared/data}
copy=$PWD/.checked
rm -rf "$copy" && mkdir -p "$copy"
git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --create | tar --extract --directory="$copy"
cd "$copy"
ODDSLIP_BUILD=checked "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel .
"$python" -m zipfile -e build/wheel/*.whl src
rm -rf build src/*.egg-info

# The sanitizer must be loaded before Python, and the library of C++ with it: else an exception that
# pyarrow or pytrec_eval throws ends the process. Not looked for: Python's own leaks at its end, and
# memory of `new` that is freed by `free`, which pytrec_eval does and our kernels, in C, can not.
# Whoever asks for more memory than there can be is told so, as everywhere, and not ended.
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so)"
ASAN_OPTIONS=detect_leaks=0:alloc_dealloc_mismatch=0:allocator_may_return_null=1
export LD_PRELOAD ASAN_OPTIONS PYTHONMALLOC=malloc PYTHONPATH=$copy/src

# What can not run here. Chromium, Java, Node and PostgreSQL bring allocators of their own, and memory
# is what the sanitizer adds to: peaks would be its own. A planted SIGSEGV ends in a report of the
# sanitizer, not in a signal.
left_out=(
    --ignore=tests/browser
    --ignore=tests/spark
    --ignore=tests/serving/test_json.py
    --ignore=tests/serving/test_sql.py
    --deselect=tests/test_benchmarks.py::test_a_toy_run_sets_ours_beside_a_peer_that_agrees_and_leaves_no_file[spark]
    --deselect=tests/test_benchmarks.py::test_a_toy_run_sets_ours_beside_a_peer_that_agrees_and_leaves_no_file[spark_large]
    --deselect=tests/test_benchmarks.py::test_a_toy_run_sets_ours_beside_a_peer_that_agrees_and_leaves_no_file[memory]
    --deselect=tests/journeys/test_forms.py::test_a_float16_file_of_seven_times_the_rows_takes_little_more_memory
    --deselect=tests/attacks/test_campaigns.py::test_a_signal_a_hang_and_a_stray_exception_are_findings_and_the_rest_goes_on
)
"$python" -m pytest -n 2 -p no:cacheprovider "${left_out[@]}" "$@"
