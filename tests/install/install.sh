#!/usr/bin/env bash
# `cmake --install` into a folder of its own, what lies there, and a program that is built on it.
#   tests/install/install.sh BUILD
set -euo pipefail
build=$1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
prefix=$place/usr

fail() { echo "$*" >&2; exit 1; }

cmake --install "$build" --prefix "$prefix" >"$place/log"

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
for program in speedo speedo-master speedo-worker caffe; do
  [ "$("$prefix/bin/$program" --version)" = "speedo $version" ] || fail "$program: no version $version"
done

# What the others start to read images in, where they look for it.
parser=$prefix/libexec/speedo/speedo-parser
if "$parser" 2>"$place/errors"; then fail "$parser does nothing by itself"; fi
grep -q 'to read images and HDF5 files' "$place/errors"
printf '\x89PNG' >"$place/bad.png"
echo 'bad.png 1' >"$place/list"
if "$prefix/bin/speedo" convert_imageset --on-bad-record abort --parser-process on "$place/" "$place/list" \
  "$place/set" 2>"$place/errors"; then fail "a bad image is no error"; fi
grep -q 'is a damaged PNG' "$place/errors" || { cat "$place/errors"; fail "speedo does not find speedo-parser"; }

mkdir "$place/man"
"$prefix/bin/speedo" manual --folder "$place/man"
[ -f "$place/man/speedo-run.1" ] || fail "no page of speedo run"
diff -r "$place/man" "$prefix/share/man/man1"
completions=$prefix/share/bash-completion/completions
for program in speedo speedo-master speedo-worker; do
  bash -c 'source "$1" && complete -p "$2" >/dev/null' - "$completions/$program" "$program"
done
head -n 1 "$prefix/share/zsh/site-functions/_speedo" | grep -q '^#compdef speedo' ||
  fail "no completion for zsh"

for file in share/doc/speedo/LICENSE share/doc/speedo/README.md share/speedo/conf/redis.conf \
  share/speedo/conf/speedo.toml share/speedo/examples/digits/digits_solver.prototxt \
  share/speedo/examples/mnist/lenet.prototxt share/speedo/examples/cifar10/get_data.sh; do
  [ -f "$prefix/$file" ] || fail "$file is not installed"
done
# What examples fetched and trained where the sources are stays there.
if find "$prefix" -size +32M | grep .; then fail "large files are installed"; fi

for program in master worker; do
  unit=$prefix/lib/systemd/system/speedo-$program.service
  grep -qx "ExecStart=$prefix/bin/speedo-$program --config $prefix/etc/speedo/speedo.toml" "$unit"
  if grep '@[A-Z_]*@' "$unit"; then fail "$unit is not filled in"; fi
  "$prefix/bin/speedo" config "$program" --config "$prefix/etc/speedo/speedo.toml" >/dev/null
done

if grep -rlE "$PWD|$(realpath "$build")" "$prefix/lib/cmake"; then
  fail "the package configuration names folders of the build"
fi
cp -r "$prefix/share/speedo/examples/library" "$place/library"
cmake -S "$place/library" -B "$place/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$prefix" >"$place/log" || { cat "$place/log"; exit 1; }
cmake --build "$place/build" >"$place/log" || { cat "$place/log"; exit 1; }
forward=$place/build/forward
"$forward" examples/mnist/lenet.prototxt | tee "$place/output"
# The first of 64 images: ten probabilities.
awk '/^prob: 64 10 \(640\):/ { for (i = 5; i <= 14; ++i) sum += $i }
     END { exit !(sum > 0.999 && sum < 1.001) }' "$place/output" || fail "no probabilities"
if "$forward" "$place/missing.prototxt" 2>"$place/errors"; then fail "a missing net is no error"; fi
grep -q 'missing.prototxt' "$place/errors"
