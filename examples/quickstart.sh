#!/usr/bin/env bash
# From nothing to a trained net: installs what the build needs, builds, fetches the digits and trains
# them on this machine with a master, three workers and Redis. Prints the accuracy at the end; what is
# done already is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

source conf/packages/install.sh
install_packages conf/packages/build.txt
if [ ! -f build/build.ninja ]; then
  cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DSPEEDO_TESTS=OFF
fi
cmake --build build --target speedo speedo-master speedo-worker speedo-parser
examples/digits/get_data.sh
exec build/bin/speedo run --solver examples/digits/digits_solver.prototxt --workers 3 "$@"
