#!/usr/bin/env bash
# The same sources in another folder, at another time, under another user's settings, give the same
# bytes as the build that is there.
#   tests/install/reproducible.sh BUILD [TARGET...]     (default: the program speedo)
set -euo pipefail
build=$(realpath "$1")
shift
targets=("${@:-speedo}")
if [ -n "$(sed -n 's/^SPEEDO_SANITIZE:[A-Z]*=//p' "$build/CMakeCache.txt")" ]; then
  echo "test_reproducible: skipped: this is a build with sanitizers"
  exit 77
fi
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
sources=$place/another-folder/of-the-sources
mkdir -p "$sources"
cp -r CMakeLists.txt conf include proto src strategies actors README.md LICENSE examples "$sources"

cached() { sed -n "s/^\($1\):\([A-Z]*\)=\(.*\)/-D\1:\2=\3/p" "$build/CMakeCache.txt"; }
mapfile -t options < <(cached 'CMAKE_BUILD_TYPE|CMAKE_CXX_COMPILER|SPEEDO_CUDA|SPEEDO_ONEDNN|SPEEDO_UNITY' |
  sed 's/\(CMAKE_CXX_COMPILER\):STRING/\1:FILEPATH/')
(
  umask 077
  export TZ=Pacific/Chatham LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH=1 USER=nobody HOME=$place
  cmake -S "$sources" -B "$place/build" -G Ninja -DSPEEDO_TESTS=OFF "${options[@]}"
  cmake --build "$place/build" -j "$(nproc)" --target "${targets[@]}"
) >"$place/log" 2>&1 || { tail -n 30 "$place/log"; exit 1; }

for target in "${targets[@]}"; do
  file=$(cd "$place/build" && find . -name "$target" -type f -o -name "lib$target.a" -type f)
  [ -n "$file" ] || { echo "$target makes no file" >&2; exit 1; }
  cmp "$build/$file" "$place/build/$file"
  echo "$file: $(stat -c %s "$build/$file") bytes, the same"
done
