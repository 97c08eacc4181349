#!/usr/bin/env bash
# What the programs and libraries of a build were compiled and linked with, read back from them.
#   tests/install/hardening.sh BUILD
set -euo pipefail
build=$1
cache() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
if [ -n "$(cache SPEEDO_SANITIZE)" ]; then
  echo "test_hardening: skipped: sanitizers replace what it looks for"
  exit 77
fi
faults=0
fail() { echo "$*" >&2; faults=$((faults + 1)); }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# has FILE TEXT WHAT: a line of what readelf told has the text.
has() { grep -qE -- "$2" "$place/told" || fail "$1: $3"; }
lacks() { if grep -E -- "$2" "$place/told"; then fail "$1: $3"; fi; }

for program in speedo speedo-master speedo-worker speedo-parser; do
  file=$build/bin/$program
  readelf -W --file-header --program-headers --dynamic --dyn-syms "$file" >"$place/told"
  has "$program" 'Type: +DYN' "is not position-independent"
  has "$program" 'FLAGS_1.* NOW.* PIE|FLAGS_1.* PIE.* NOW' "looks functions up when they are called"
  has "$program" 'GNU_RELRO' "may change its table of functions"
  has "$program" 'GNU_STACK.* RW ' "has an executable stack"
  lacks "$program" 'LOAD.* RWE ' "has memory that is written and executed"
  lacks "$program" 'TEXTREL' "has relocated code"
  # That of HDF5 is in a folder of its own; an installed program has none.
  if sed -n '/RPATH\|RUNPATH/ { s/.*\[//; s/\].*//; p }' "$place/told" | tr : '\n' |
    grep -vE '^(/usr/lib/.*)?$'; then
    fail "$program: loads libraries from elsewhere"
  fi
  has "$program" ' __stack_chk_fail' "does not protect its stack"
  has "$program" '__glibcxx_assert_fail' "does not check containers' indices"
  if [ "$(cache CMAKE_BUILD_TYPE)" = Release ]; then
    has "$program" ' __(memcpy|read|recv|fgets|snprintf)_chk' "has no fortified functions"
  fi
  # But for what NVIDIA's compiler makes.
  if grep -aoE "$PWD/[[:graph:]]+" "$file" | grep -v "^$PWD/src/gpu/" | head -n 3 | grep .; then
    fail "$program: names the folder of its sources"
  fi
done

# Jumps and returns are only marked in what is compiled here: Debian's start files are not, and so the
# linker leaves the mark of a whole program out. What is of the GPU's compiler has no mark.
if [ "$(uname -m)" = x86_64 ]; then
  while IFS= read -r library; do
    readelf -W --notes "$library" 2>/dev/null | awk -v library="$library" '
      function end() { if (member != "" && !marked && member !~ /\.cu\.o/) { print library "(" member ")"; bad = 1 } }
      /^File: / { end(); member = $2; sub(/.*\(/, "", member); sub(/\).*/, "", member); marked = 0 }
      /IBT, SHSTK/ { marked = 1 }
      END { end(); exit bad }' || fail "$library: compiled without -fcf-protection"
  done < <(find "$build/src" "$build/strategies" "$build/actors" "$build/proto" -name '*.a')
fi
[ "$faults" -eq 0 ]
