#!/usr/bin/env bash
# The same sources in another folder, at another time, under another user's settings, give the same
# bytes: as in the build that is there, or, if that has code for GPUs, which NVIDIA's compiler names
# after its folder, as in a second one without.
#   tests/install/reproducible.sh BUILD [TARGET...]     (default: the program speedo)
set -euo pipefail
build=$(realpath "$1")
shift
targets=("${@:-speedo}")
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
if [ -n "$(cached SPEEDO_SANITIZE)" ]; then
  echo "test_reproducible: skipped: this is a build with sanitizers"
  exit 77
fi
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# made_in SOURCES BUILD: copies the sources and builds the targets.
made_in() {
  mkdir -p "$1"
  cp -r CMakeLists.txt LICENSE README.md actors conf examples include proto src strategies "$1"
  {
    cmake -S "$1" -B "$2" -G Ninja -DSPEEDO_TESTS=OFF -DSPEEDO_CUDA=OFF \
      -DCMAKE_BUILD_TYPE="$(cached CMAKE_BUILD_TYPE)" -DSPEEDO_UNITY="$(cached SPEEDO_UNITY)" \
      -DSPEEDO_ONEDNN="$(cached SPEEDO_ONEDNN)" \
      -DCMAKE_CXX_COMPILER="$(cached CMAKE_CXX_COMPILER)"
    cmake --build "$2" -j "$(nproc)" --target "${targets[@]}"
  } >"$place/log" 2>&1 || { tail -n 30 "$place/log"; exit 1; }
}

(
  umask 077
  export TZ=Pacific/Chatham SOURCE_DATE_EPOCH=1 USER=nobody HOME=$place
  made_in "$place/another/folder/of-sources" "$place/another/build"
)
if grep -q '^CMAKE_CUDA_FLAGS:' "$build/CMakeCache.txt"; then
  build=$place/build
  made_in "$place/sources" "$build"
fi
for target in "${targets[@]}"; do
  file=$(cd "$place/another/build" && find . -type f '(' -name "$target" -o -name "lib$target.a" ')')
  [ -n "$file" ] || { echo "$target makes no file" >&2; exit 1; }
  cmp "$build/$file" "$place/another/build/$file"
  echo "$file: $(stat -c %s "$build/$file") bytes, the same"
done
