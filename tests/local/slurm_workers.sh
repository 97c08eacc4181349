#!/usr/bin/env bash
# conf/slurm/speedo.sbatch: what it adds to the flags of the user, what becomes of a signal that comes before
# the master is there, and when all workers end for good: the job ends, with their exit code, and the master
# with it. What Slurm has of programs stands in for it here. Argument: the folder of the build.
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
stub scontrol <<END
[ \$1 != requeue ] || touch '$work/queued'
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

# job FLAG...: runs the script, with its output in job.out, and sets `code`.
job() {
  code=0
  (cd "$work" && PATH=$work/bin:$PATH TMPDIR=$work/tmp PATIENCE=1 SLURM_JOB_ID=79 SLURM_NTASKS=2 \
    SLURM_JOB_NODELIST="n[1-2]" timeout 120 bash "$script" --solver solver.prototxt "$@" \
    >job.out 2>&1) || code=$?
  [ -z "$(ls "$work/tmp")" ] || fail "temporary files are left"
}

# ends_with CODE LAST FLAG...: workers end with LAST each, and so the job with CODE. Nothing is left running then.
ends_with() {
  printf '%s\n' "cat \"\$(sed 's/.*--redis-password-file=\([^ ]*\).*/\1/' <<<\"\$*\")\"; exit $2" | stub speedo-worker
  job --sync "${@:3}"
  [ "$code" = "$1" ] || fail "the job ended with $code, not $1"
  grep -q "all workers have ended (srun: exit code $2; see worker-N.log)" "$work/job.out" || fail "nothing is said"
}

# Of the Redis that the script starts, whatever the user has for another one.
passwords_count() {
  local own='it"s \own' export_of_user
  for export_of_user in SPEEDO_REDIS_PASSWORD=other "SPEEDO_REDIS_PASSWORD_FILE=$work/other" \
    SPEEDO_REDIS_USERNAME=other; do
    export "${export_of_user?}"
    ends_with 65 65
    unset "${export_of_user%%=*}"
  done
  (umask 077 && echo "$own" | tee "$work/password" >"$work/other")
  echo 'redis_password_file = "other"' >"$work/speedo.toml"
  ends_with 65 65
  [ "$(<"$work/worker-0.log")" != "$own" ] || fail "workers have the password of another Redis"
  rm "$work/speedo.toml"
  ends_with 65 65 --redis-password-file password
  [ "$(<"$work/worker-0.log")" = "$own" ] || fail "workers have another password than the file's"
  echo >"$work/password"
  job --redis-password-file password
  grep -q "no password can be read" "$work/job.out" || fail "Redis is started without a password"
}

# gives FLAG... -- ADDED...: the master gets the flags of the user and those, with `ANY` for a value that is
# drawn, and its address file.
gives() {
  local flags=() wanted
  while [ "$1" != -- ]; do
    flags+=("$1")
    shift
  done
  shift
  rm -f "$work/flags"
  job "${flags[@]}"
  [ "$code" = 3 ] || fail "the job ended with $code, not as the master"
  wanted="--solver solver.prototxt $* --address-file ANY"
  # shellcheck disable=SC2053 # A pattern.
  [[ $(<"$work/flags") == ${wanted//ANY/*} ]] || fail "${flags[*]}: the master got $(<"$work/flags"), not $wanted"
}

flags_of_the_user_count() {
  local here="--host 127.0.0.1 --bind 127.0.0.1" token="--token-file ANY" redis="--redis 127.0.0.1:ANY --redis-password-file ANY"
  echo "echo \"\$@\" >'$work/flags'; exit 3" | stub speedo-master
  gives -- --workers 2 "$here" "$token" "$redis"
  echo 'iface = "lo"' >"$work/speedo.toml"
  gives -- --workers 2 "$token" "$redis"
  rm "$work/speedo.toml"
  SPEEDO_IFACE=lo gives -- --workers 2 "$token" "$redis"
  SPEEDO_TLS_CERT=ours gives -- --workers 2 "$here" "$redis"
  SPEEDO_TLS_CERT=ours gives --tls-cert own -- --tls-cert own --workers 2 "$here" "$redis"
  gives --redis-password-file other -- --redis-password-file other --workers 2 "$here" "$token" "${redis% --*}"
  gives --redis named:1 -- --redis named:1 --workers 2 "$here" "$token"
  gives --token-file own -- --token-file own --workers 2 "$here" "$redis"
  gives --workers 1:4 -- --workers 1:4 "$here" "$token" "$redis"
  gives --bind 0.0.0.0 -- --bind 0.0.0.0 --workers 2 "$token" "$redis"
  gives -host=n1 -- -host=n1 --workers 2 "$token" "$redis"
  gives --resume=a.speedo -- --resume=a.speedo --workers 2 "$here" "$token" "$redis"
  rm "$work/speedo-79.begun"  # Of the jobs before, which began and failed.
  export SLURM_RESTART_COUNT=1
  gives --resume=a.speedo -- --resume=a.speedo --workers 2 "$here" "$token" "$redis"
  gives --weights a -- --weights a --workers 2 "$here" "$token" "$redis"
  touch "$work/speedo-79.begun"
  gives --weights a -- --weights a --resume=auto --workers 2 "$here" "$token" "$redis"
  gives --resume=auto --sync -- --sync --resume=auto --workers 2 "$here" "$token" "$redis"
  gives --start-iter 5 --sync -- --sync --resume=auto --workers 2 "$here" "$token" "$redis"
  gives -startIter=5 --sync -- --sync --resume=auto --workers 2 "$here" "$token" "$redis"
  gives --weights a --start-iter 5 -- --weights a --start-iter 5 --resume=auto --workers 2 "$here" "$token" "$redis"
  gives --resume=a.speedo -- --resume=auto --workers 2 "$here" "$token" "$redis"
  unset SLURM_RESTART_COUNT
  rm "$work/speedo-79.begun"
}

# A worker's certificate is another than the master's.
certificates_are_wanted() {
  job --tls-cert own
  [ "$code" = 69 ] || fail "the job whose workers have no certificate ended with $code"
  grep -q "name that of the workers with SPEEDO_TLS_CERT" "$work/job.out" || fail "nothing is said of certificates"
}

# begins COMMAND: a master that writes its address, and then does so.
begins() {
  echo "echo 'speedo://127.0.0.1:1' >\"\${!#}\"; $1" | stub speedo-master
  job
}

# What is queued again has begun if its master had; what has reached its end, has not.
begun_is_noted() {
  local noted=$work/speedo-79.begun
  begins "exit 69"
  [ "$code" = 69 ] || fail "the job whose master failed ended with $code"
  [ -e "$noted" ] || fail "the job whose master failed had not begun"
  begins "kill -USR1 \$PPID; exit 0"
  [ -e "$work/queued" ] || fail "the job that begins without time is not queued again"
  [ -e "$noted" ] || fail "the job that is queued again had not begun"
  begins "kill -TERM \$PPID; exit 0"
  [ -e "$noted" ] || fail "the job that is stopped, perhaps to be queued again, had not begun"
  begins "exit 0"
  [ "$code" = 0 ] || fail "the job ended with $code"
  [ ! -e "$noted" ] || fail "the job that is over is noted"
}

# early SIGNAL: comes when there is no master, which is not started then.
early() {
  rm -f "$work/flags" "$work/queued"
  echo "[ \$1 != token ] || kill -$1 \$PPID; exec '$bin/speedo' \"\$@\"" | stub speedo
  job
  [ ! -e "$work/flags" ] || fail "$1 before the master: it is started"
}

early_signals_count() {
  rm "$work/bin/speedo"
  early TERM
  [ "$code" = 143 ] || fail "the job that was stopped ended with $code"
  [ ! -e "$work/queued" ] || fail "the job that was stopped is queued again"
  early USR1
  [ "$code" = 0 ] || fail "the job without time ended with $code"
  [ -e "$work/queued" ] || fail "the job without time is not queued again"
  [ ! -e "$work/speedo-79.begun" ] || fail "the job without a master has begun"
}

ends_with 65 65
ends_with 69 0
passwords_count
rm "$work/bin/speedo-master"
flags_of_the_user_count
certificates_are_wanted
begun_is_noted
early_signals_count
echo "Slurm: flags of the user count, early signals too; a job whose workers have all ended ends"
