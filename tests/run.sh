#!/usr/bin/env bash
# Installs what the build needs, builds and runs the tests. The test cases that were skipped are
# listed before ctest's summary, which comes last.
#   tests/run.sh            all tests but the long ones, of an optimised build in build/
#   tests/run.sh --long     also those that train for minutes, and the images of docker/
#   tests/run.sh --asan     the programs labelled "sanitize", under the address and the
#                           undefined-behaviour sanitizer, in build-asan/
#   tests/run.sh --tsan     the same under the thread sanitizer, in build-tsan/
# What tests draw at random is drawn from the tree that was checked out, so that a run of it can be
# repeated; --long draws anew, and SPEEDO_TEST_SEED decides in any case.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=release target=all labels=(--label-exclude '^long$')
case "${1:-}" in
  "") ;;
  --long)
    export SPEEDO_LONG=1
    labels=()
    ;;
  --asan | --tsan)
    preset=${1#--}
    target=sanitize_tests
    labels=(--label-regex sanitize)
    ;;
  *) echo "usage: tests/run.sh [--long | --asan | --tsan]" >&2; exit 2 ;;
esac
if [ "${1:-}" != --long ] && tree=$(git rev-parse 'HEAD^{tree}' 2>/dev/null); then
  : "${SPEEDO_TEST_SEED:=$((16#${tree:0:15}))}"
  export SPEEDO_TEST_SEED
fi
folder=build
if [ "$preset" != release ]; then folder=build-$preset; fi

source conf/packages/install.sh
install_packages conf/packages/build.txt
install_packages conf/packages/test.txt
if [ "${1:-}" = --long ]; then install_packages conf/packages/long.txt; fi
jobs=$(nproc)
if [ "$jobs" -gt 8 ]; then jobs=8; fi
# Where no GPU runs them, kernels for one architecture show that they compile.
few=ON
if [ -e /dev/nvidiactl ] || [ "${1:-}" = --long ]; then few=OFF; fi
cmake --preset "$preset" -DSPEEDO_TESTS=ON -DSPEEDO_CUDA_FEW_KERNELS=$few
cmake --build "$folder" -j "$jobs" --target "$target"

# list_skipped LOG: passes ctest's output on, with the list before the summary.
list_skipped() {
  local line summary=()
  while IFS= read -r line; do
    if [ "${#summary[@]}" -gt 0 ] || [[ "$line" == *"% tests passed"* ]]; then
      summary+=("$line")
    else
      printf '%s\n' "$line"
    fi
  done
  # Of a case in a program, or "PROGRAM: skipped: REASON" of all of it.
  local skipped='^([a-z_]+: )?skipped: '
  if grep -qE "$skipped" "$1"; then
    echo "Test cases skipped, and in how many tests:"
    grep -hE "$skipped" "$1" | sort | uniq -c
  fi
  printf '%s\n' "${summary[@]}"
}

# Five places: for two tests that compute, or for one of them beside three that wait.
ctest --test-dir "$folder" --no-tests=error --output-on-failure -j 5 "${labels[@]}" |
  list_skipped "$folder/Testing/Temporary/LastTest.log"
