#!/usr/bin/env bash
# Fuzzes the parsers, one after another, with clang's libFuzzer under the address and the
# undefined-behaviour sanitizer, in build-fuzz/.
#   tests/fuzz/run.sh [TARGET...] [--seconds N]   N of each, 60 if not given; without targets all
# Inputs that reach new edges go to tests/fuzz/corpus/TARGET, those that end a program to
# build-fuzz/crashes/TARGET. Prints a line for each target; exit code 1 if one found something
# (not for hdf5, whose crashes are its library's).
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=60 targets=()
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds)
      seconds=${2:?--seconds needs a number}
      shift 2
      ;;
    -*) echo "usage: tests/fuzz/run.sh [TARGET...] [--seconds N]" >&2; exit 2 ;;
    *)
      [ -f "tests/fuzz/$1_fuzz.cpp" ] || { echo "there is no tests/fuzz/$1_fuzz.cpp" >&2; exit 2; }
      targets+=("$1")
      shift
      ;;
  esac
done
if [ "${#targets[@]}" -eq 0 ]; then
  for source in tests/fuzz/*_fuzz.cpp; do
    name=${source##*/}
    targets+=("${name%_fuzz.cpp}")
  done
fi

if ! command -v clang++ >/dev/null; then
  source conf/packages/install.sh
  install_packages conf/packages/long.txt
fi
jobs=$(nproc)
if [ "$jobs" -gt 8 ]; then jobs=8; fi
cmake --preset fuzz >build-fuzz.log || { cat build-fuzz.log; exit 1; }
rm build-fuzz.log
cmake --build build-fuzz -j "$jobs" --target "${targets[@]/#/fuzz_}"

export TMPDIR=/dev/shm
limits=(-rss_limit_mb=1024 -malloc_limit_mb=256 -timeout=20)
export ASAN_OPTIONS=allocator_may_return_null=0 UBSAN_OPTIONS=print_stacktrace=1

# longest TARGET: of its inputs; LMDB's pages and HDF5's files take room.
longest() {
  case "$1" in
    lmdb | hdf5 | leveldb) echo 16384 ;;
    image_files | prototxt) echo 8192 ;;
    *) echo 4096 ;;
  esac
}

# number NAME LOG: a figure of the last status line or of the statistics.
number() {
  grep -oE "(stat::)?$1: +[0-9]+" "$2" | tail -n 1 | grep -oE '[0-9]+$' || echo 0
}

# tolerance TARGET: HDF5's library ends on some files, which is no fault of ours; what it ends on is
# kept, for a look at the stacks in the log.
tolerance() {
  if [ "$1" = hdf5 ]; then
    echo "-fork=1 -ignore_crashes=1 -ignore_ooms=1 -ignore_timeouts=1"
  fi
}

found=0 TIMEFORMAT=%U
printf '%-12s %12s %12s %8s %8s %8s\n' target executions cpu_seconds edges files crashes
for target in "${targets[@]}"; do
  program=build-fuzz/fuzz/fuzz_$target
  corpus=tests/fuzz/corpus/$target work=build-fuzz/corpus/$target
  crashes=build-fuzz/crashes/$target log=build-fuzz/fuzz/$target.log
  mkdir -p "$corpus" "$work" "$crashes"
  status=0
  read -ra options <<<"$(tolerance "$target")"
  { time "$program" "$work" "$corpus" "${options[@]}" "${limits[@]}" \
    -max_total_time="$seconds" -max_len="$(longest "$target")" -artifact_prefix="$crashes/" \
    -print_final_stats=1 >"$log" 2>&1 || status=$?; } 2>"$log.time"
  # What reaches edges that nothing in the repository does. Counts of passes are not looked at:
  # each would be a file.
  "$program" -merge=1 -use_counters=0 "${limits[@]}" -max_len="$(longest "$target")" \
    "$corpus" "$work" >>"$log" 2>&1 || status=$?
  crashed=$(find "$crashes" -type f | wc -l)
  printf '%-12s %12s %12s %8s %8s %8s\n' "$target" "$(number number_of_executed_units "$log")" \
    "$(cat "$log.time")" "$(number cov "$log")" "$(find "$corpus" -type f | wc -l)" "$crashed"
  if [ "$status" -ne 0 ] || [ "$crashed" -ne 0 ]; then
    if [ "$target" != hdf5 ]; then found=1; fi
    echo "  see $log and $crashes" >&2
  fi
done
exit "$found"
