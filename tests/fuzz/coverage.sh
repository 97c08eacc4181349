#!/usr/bin/env bash
# Tells how many of each parser's lines the corpora, the seeds and the tests of the gate reach,
# counted by GCC and gcovr in build-coverage/, where nothing else is built.
#   tests/fuzz/coverage.sh [--missing]   --missing: which lines are not reached, too
# The parsers are those of parsers.txt. Exit code 1 if one of them is reached by less than 90 %.
set -euo pipefail
cd "$(dirname "$0")/../.."

least=90 lists_lines=0 tests=(test_fuzz test_gate)
case "${1-}" in
  "") ;;
  --missing) lists_lines=1 ;;
  *) echo "usage: tests/fuzz/coverage.sh [--missing]" >&2; exit 2 ;;
esac

if ! command -v gcovr >/dev/null; then
  source conf/packages/install.sh
  install_packages conf/packages/long.txt
fi
build="build-coverage"
cmake --preset coverage >"$build.log" || { cat "$build.log"; exit 1; }
mv "$build.log" "$build/configure.log"
cmake --build "$build" -j "$(nproc)" --target "${tests[@]}"
find "$build" -name '*.gcda' -delete
for test in "${tests[@]}"; do
  log=$build/$test.log
  TMPDIR=/dev/shm "$build/tests/$test" >"$log" 2>&1 || { cat "$log"; exit 1; }
done

mapfile -t parsers < <(sed 's/#.*//' tests/fuzz/parsers.txt | grep -v '^ *$')
filters=()
for parser in "${parsers[@]}"; do
  [ -f "$parser" ] || { echo "tests/fuzz/parsers.txt: there is no $parser" >&2; exit 2; }
  filters+=(--filter "$PWD/${parser//./\\.}\$")
done
# gcov leaves files where it runs, until gcovr has read them.
trap 'rm -f ./*.gcov' EXIT
gcovr --root . --object-directory "$build" "${filters[@]}" -j "$(nproc)" \
  --csv "$build/coverage.csv" --txt "$build/coverage.txt" "$build"
if [ "$lists_lines" -eq 1 ]; then cat "$build/coverage.txt"; fi

# lines_of PARSER: how many it has and how many were reached; nothing if it was not compiled.
lines_of() {
  awk -F, -v parser="$1" '$1 == parser { print $2, $3 }' "$build/coverage.csv"
}

low=0
printf '%-48s %6s %8s %8s\n' parser lines reached '%'
for parser in "${parsers[@]}"; do
  read -r lines reached <<<"$(lines_of "$parser")" ||
    { echo "$parser is no part of these tests" >&2; exit 2; }
  printf '%-48s %6s %8s %8s\n' "$parser" "$lines" "$reached" \
    "$(awk -v l="$lines" -v r="$reached" 'BEGIN { printf "%.1f", 100 * r / l }')"
  if [ $((100 * reached)) -lt $((least * lines)) ]; then low=$((low + 1)); fi
done
if [ "$low" -gt 0 ]; then
  echo "$low of ${#parsers[@]} parsers are reached by less than $least %" >&2
  exit 1
fi
