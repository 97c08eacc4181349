#!/usr/bin/env bash
# Installs what the build needs, builds into build/ and runs the tests; ctest's summary comes last.
#   tests/run.sh [--long]    --long: also the tests that train for minutes
set -euo pipefail
cd "$(dirname "$0")/.."

labels=(--label-exclude '^long$')
case "${1:-}" in
  "") ;;
  --long)
    export SPEEDO_LONG=1
    labels=()
    ;;
  *) echo "usage: tests/run.sh [--long]" >&2; exit 2 ;;
esac

source conf/packages/install.sh
install_packages conf/packages/build.txt
jobs=$(nproc)
if [ "$jobs" -gt 8 ]; then jobs=8; fi
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DSPEEDO_TESTS=ON
cmake --build build -j "$jobs"
exec ctest --test-dir build --output-on-failure -j 2 "${labels[@]}"
