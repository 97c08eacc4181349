#!/usr/bin/env bash
# conf/slurm/speedo.sbatch when all its workers end for good: the job ends, with their exit code, and the
# master with it. What Slurm has of programs stands in for it here. Argument: the folder of the build.
set -euo pipefail

bin=$(realpath "$1/bin")
if ! command -v redis-server >/dev/null; then
  echo "skipped: this needs redis-server (conf/packages/test.txt)"
  exit 77
fi
work=$(mktemp -d)
script=$PWD/conf/slurm/speedo.sbatch
# shellcheck source=tests/local/namespaces.sh
source "$(dirname "$0")/namespaces.sh"
trap 'remove_folder "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  cat "$work"/*.out >&2
  exit 1
}

# stub NAME < TEXT: a program of that name.
stub() {
  { echo '#!/usr/bin/env bash' && cat; } >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}

mkdir "$work/bin" "$work/tmp"
ln -s "$bin/speedo" "$bin/speedo-master" "$work/bin"
stub scontrol <<'END'
echo "NodeName=n1 NodeAddr=127.0.0.1"
END
# Starts two tasks; its exit code is the greatest of theirs.
stub srun <<'END'
while [[ $1 == --* ]]; do shift; done
tasks=()
for SLURM_PROCID in 0 1; do
  export SLURM_PROCID
  "$@" >"worker-$SLURM_PROCID.log" 2>&1 &
  tasks+=("$!")
done
code=0
for task in "${tasks[@]}"; do
  ended=0
  wait "$task" || ended=$?
  code=$((ended > code ? ended : code))
done
exit "$code"
END
write_noise "$work/solver.prototxt" "$work/snap" 100

# ends_with CODE LAST: workers end with LAST each, and so the job with CODE. Nothing is left running then.
ends_with() {
  local code=0
  echo "exit $2" | stub speedo-worker
  (cd "$work" && PATH=$work/bin:$PATH TMPDIR=$work/tmp PATIENCE=1 SLURM_JOB_ID=79 SLURM_NTASKS=2 \
    SLURM_JOB_NODELIST="n[1-2]" timeout 120 bash "$script" --solver solver.prototxt --sync \
    >job.out 2>&1) || code=$?
  [ "$code" = "$1" ] || fail "the job ended with $code, not $1"
  grep -q "all workers have ended (srun: exit code $2; see worker-N.log)" "$work/job.out" || fail "nothing is said"
  [ -z "$(ls "$work/tmp")" ] || fail "temporary files are left"
}

ends_with 65 65
ends_with 69 0
echo "Slurm: a job whose workers have all ended ends"
