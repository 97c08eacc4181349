#!/usr/bin/env bash
# The tests that need a GPU, in two halves: a machine that builds, and one that has the GPU.
#   tests/gpu.sh pack FOLDER         builds what the other half needs, and copies it there as the
#                                    project has it: programs, the libraries that they need but
#                                    CUDA's and the C library, tests and small data; the built
#                                    part compressed (build.tar.xz)
#   FOLDER/tests/gpu.sh run [TABLES] there: finds CUDA's libraries, runs all tests and benchmarks, at
#                                    most ten minutes each, and writes what came of each to TABLES
#   tests/gpu.sh run [TABLES]        the same where the project was built
# The run needs NVIDIA's driver, and cuBLASLt and cuDNN, of CUDA's toolkit or of Python packages;
# PyTorch, where python3 finds it, is measured beside.
set -euo pipefail

limit=600
megabytes_max=60
programs=(bin/speedo tests/test_gpu tests/test_gpu_libraries tests/test_backend tests/test_layers
  tests/test_gpu_nets tests/golden_runner tests/gpu_bench)

pack() {
  local root build to=$1
  root=$(cd "$(dirname "$0")/.." && pwd)
  build=$root/build
  if [ "$(realpath -m "$to")" = "$root" ]; then
    echo "gpu.sh: pack into a folder of its own, not the project's" >&2
    exit 2
  fi
  cmake --preset release -DSPEEDO_CUDA=ON -DSPEEDO_CUDA_FEW_KERNELS=OFF -S "$root" >/dev/null
  cmake --build "$build" -j "$(nproc)" \
    --target speedo test_gpu test_gpu_libraries test_backend test_layers test_gpu_nets \
    golden_runner gpu_bench
  rm -rf "$to/build"
  mkdir -p "$to/build/bin" "$to/build/tests" "$to/build/lib" "$to/tests/golden" "$to/tests/bench" \
    "$to/tests/support"
  local program net
  for program in "${programs[@]}"; do
    strip -o "$to/build/$program" "$build/$program"
    copy_libraries "$build/$program" "$to/build/lib"
  done
  tar -C "$to" -c build | xz -T 0 >"$to/build.tar.xz"
  rm -r "$to/build"
  cp -r "$root/tests/golden/data" "$to/tests/golden/"
  cp "$root/tests/support/job_processes.py" "$to/tests/support/"
  cp -r "$root"/tests/bench/{bench_nets.py,compare_torch_gpu.py,torch_step.py,nets} \
    "$to/tests/bench/"
  for net in mnist cifar10 imagenet; do
    mkdir -p "$to/examples/$net"
    cp "$root/examples/$net"/*.prototxt "$to/examples/$net/"
  done
  cp "$0" "$to/tests/gpu.sh"
  git -C "$root" rev-parse HEAD >"$to/commit"
  local megabytes
  megabytes=$(du -sm "$to" | cut -f1)
  echo "$to: $megabytes MB"
  if [ "$megabytes" -gt "$megabytes_max" ]; then
    echo "gpu.sh: more than $megabytes_max MB" >&2
    exit 1
  fi
}

# What the linker finds for a program, but for the C library, which must be the machine's, and CUDA's.
copy_libraries() {
  local path
  ldd "$1" | awk '$3 ~ /^\// { print $3 }' | while read -r path; do
    case ${path##*/} in
      libc.so* | libm.so* | libdl.so* | librt.so* | libpthread.so* | ld-linux* | \
        libcuda* | libcudnn* | libcublas* | libnv*) ;;
      *) cp -nL "$path" "$2/" ;;
    esac
  done
}

# Folders of CUDA's libraries, as the toolkit and as Python packages have them.
cuda_folders() {
  local folder
  for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib \
    $(python3 -c 'import nvidia; print(*nvidia.__path__)' 2>/dev/null || true); do
    if [ -d "$folder" ]; then find -L "$folder" -maxdepth 3 -name 'libc*.so*' -not -path '*/stubs/*' -printf '%h\n'; fi
  done | sort -u
}

# part NAME COMMAND...: one test or benchmark, its output in the folder of tables. Once the GPU has been
# seen, one that skips all of its cases has not found it, and failed.
part() {
  local name=$1 code=0
  shift
  timeout "$limit" "$@" >"$tables/$name.txt" 2>&1 || code=$?
  case $code in
    0) echo "$name: passed" ;;
    77) echo "$name: FAILED, skipped ($(head -n 1 "$tables/$name.txt"))" ;;
    124) echo "$name: FAILED, over $limit s" ;;
    *) echo "$name: FAILED with $code" ;;
  esac | tee -a "$tables/summary.txt"
  if [ "$code" -ne 0 ]; then failed=$code; fi
}

run() {
  local root
  root=$(cd "$(dirname "$0")/.." && pwd)
  tables=$(realpath -m "${1:-gpu_tables}")
  mkdir -p "$tables"
  : >"$tables/summary.txt"
  LD_LIBRARY_PATH=$root/build/lib:$(cuda_folders | paste -sd :)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
  if [ -e "$root/build.tar.xz" ]; then tar -C "$root" -xJf "$root/build.tar.xz"; fi
  cd "$root/build"
  failed=0
  part device_query bin/speedo device_query
  if [ "$failed" -ne 0 ]; then
    cat "$tables/device_query.txt" >&2
    # What cannot be started, or crashes, says nothing about the GPU.
    if [ "$failed" -ge 124 ]; then exit 1; fi
    exit 77
  fi
  part kernels_on_host tests/test_gpu
  part libraries_on_host tests/test_gpu_libraries
  part backend tests/test_backend --gpu 0 --filenames-as-tags '~[cpu]' '~[#cpu_limits_test]' \
    '~[#memory_test]' '~[#parts_test]' '~[#onednn_failure_test]' '~[#deferred_device_test]' \
    '~[#signal_stack_test]'
  part layers tests/test_layers --gpu 0
  part nets tests/test_gpu_nets
  part golden tests/golden_runner --device gpu ../tests/golden/data
  if command -v compute-sanitizer >/dev/null; then
    local tool
    for tool in memcheck racecheck initcheck; do
      part "$tool" compute-sanitizer --tool "$tool" --error-exitcode 1 tests/test_layers --gpu 0
    done
  else
    echo "compute-sanitizer: skipped (it is not here)" | tee -a "$tables/summary.txt"
  fi
  local net
  part bench python3 ../tests/bench/compare_torch_gpu.py --alone --rounds 1
  if python3 -c 'import torch' 2>/dev/null; then
    for net in lenet cifar10_full alexnet googlenet resnet50 vgg16; do
      part "compare_torch_$net" python3 ../tests/bench/compare_torch_gpu.py --rounds 2 "$net"
    done
  else
    echo "compare_torch: skipped (python3 finds no torch)" | tee -a "$tables/summary.txt"
  fi
  if [ "$failed" -ne 0 ]; then exit 1; fi
}

case "${1:-}" in
  pack) pack "${2:?usage: tests/gpu.sh pack FOLDER}" ;;
  run) run "${2:-}" ;;
  *)
    echo "usage: tests/gpu.sh pack FOLDER | run [TABLES]" >&2
    exit 2
    ;;
esac
