#!/usr/bin/env bash
# conf/slurm/speedo.sbatch on a Slurm of this test's own: munge, slurmctld and two slurmd, each in a network
# and a name space of its own. A training across both nodes loses a worker and goes on, reaches its end, and
# is stopped for want of time, queued again, and resumed. Argument: the folder of the build. Exit code 77:
# this machine gives no namespaces, or has no Slurm.
set -euo pipefail

bin=$(realpath "$1/bin")
for program in slurmctld slurmd munged sbatch redis-server ip; do
  if ! command -v "$program" >/dev/null; then
    echo "skipped: this needs $program (conf/packages/long.txt)"
    exit 77
  fi
done
if [ "$(id -u)" -ne 0 ] || ! unshare --net --uts true 2>/dev/null; then
  echo "skipped: this needs root and namespaces"
  exit 77
fi

work=$(mktemp -d)
chmod 755 "$work"
readonly work id=sm$$ names=(head node1 node2) subnet=10.78.0
# shellcheck source=tests/local/namespaces.sh
source "$(dirname "$0")/namespaces.sh"
export SLURM_CONF=$work/slurm.conf
mkdir "$work"/{state,spool-node1,spool-node2,job}

clean_up() {
  remove_network
  if [ -f "$work/munge.pid" ]; then kill "$(cat "$work/munge.pid")" 2>/dev/null || true; fi
  remove_folder "$work"
}
trap clean_up EXIT

fail() {
  echo "FAILED: $*" >&2
  tail -n 20 "$work"/job/*.out "$work"/*.log 2>/dev/null >&2 || true
  exit 1
}

# on NAME COMMAND...: on that node, as which it is known there.
# shellcheck disable=SC2016 # Another shell expands it.
on() {
  local name=$1
  shift
  ip netns exec "$id-$name" unshare --uts bash -c 'hostname "$1"; shift; exec "$@"' on "$name" "$@"
}

start_slurm() {
  head -c 1024 /dev/urandom >"$work/munge.key"
  chmod 400 "$work/munge.key"
  munged --force --key-file="$work/munge.key" --socket="$work/munge.socket" \
    --pid-file="$work/munge.pid" --log-file="$work/munge.log" --seed-file="$work/munge.seed"
  cat >"$SLURM_CONF" <<END
ClusterName=try
SlurmctldHost=head(10.78.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool-%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
KillWait=20
NodeName=node1 NodeAddr=10.78.0.2 CPUs=$(nproc)
NodeName=node2 NodeAddr=10.78.0.3 CPUs=$(nproc)
PartitionName=all Nodes=node1,node2 Default=YES MaxTime=INFINITE State=UP
END
  # Nothing here uses control groups, and there may be none; what is named is not looked for.
  echo CgroupPlugin=cgroup/v1 >"$work/cgroup.conf"
  on head slurmctld -D >"$work/slurmctld.out" 2>&1 &
  on node1 slurmd -D >"$work/slurmd1.out" 2>&1 &
  on node2 slurmd -D >"$work/slurmd2.out" 2>&1 &
  eventually 60 "both nodes are idle" nodes_are_idle
}

nodes_are_idle() { [ "$(on head sinfo --noheader --Node --states=idle | wc -l)" = 2 ]; }

write_job() { write_noise "$work/job/solver.prototxt" "$work/job/snap" "$1"; }

# submit OPTION... -- FLAG...: sets `job`.
submit() {
  local options=()
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  job=$(PROGRAMS=$bin on head sbatch --parsable --chdir="$work/job" --nodes=2 \
    --output="$work/job/%j.out" --open-mode=append "${options[@]}" \
    "$PWD/conf/slurm/speedo.sbatch" --solver "$work/job/solver.prototxt" --sync --json "$@")
  out=$work/job/$job.out
}

in_out() { grep -q -- "$1" "$out"; }
state() { on head scontrol show job "$job" | sed -n 's/.*JobState=\([A-Z]*\).*/\1/p'; }
is_state() { [ "$(state)" = "$1" ]; }

a_killed_worker_is_started_again() {
  local password_in
  write_job 100000000
  submit -- --max-iter 12000
  eventually 60 "training goes on" in_out "Iteration 300 ("
  works_on node1 || fail "node1 has no worker"
  works_on node2 || fail "node2 has no worker"
  # Redis' password is the only requirepass there is.
  for password_in in /proc/[0-9]*/cmdline; do
    if grep -qa "requirepass" "$password_in" 2>/dev/null; then fail "a password is in $password_in"; fi
  done
  workers_on node2 | xargs kill -KILL
  eventually 30 "the master notices" in_out "is gone"
  eventually 60 "it works again" works_on node2
  eventually 200 "the job ends" is_state COMPLETED
  in_out '"accuracy":1.0' || fail "the net is not trained"
  in_out '"workers":2' || fail "not both nodes took part"
}

want_of_time() {
  rm -f "$work"/job/snap*
  write_job 100000000
  submit --signal=B:USR1@20 --time=1 --
  eventually 90 "the job is queued again" in_out "queued again"
  compgen -G "$work/job/snap_iter_*.speedo" >/dev/null || fail "no checkpoint was written"
  on head scontrol update JobId="$job" StartTime=now >/dev/null 2>&1 || true
  eventually 200 "it goes on" in_out "goes on from iteration"
  eventually 60 "it trains again" trained_twice
  on head scancel "$job"
  eventually 60 "it is cancelled" is_state CANCELLED
  eventually 30 "nobody works" nobody_works
}
trained_twice() { [ "$(grep -c "training starts at iteration" "$out")" -ge 2 ]; }
nobody_works() { ! works_on node1 && ! works_on node2; }

make_network
start_slurm
a_killed_worker_is_started_again
want_of_time
echo "Slurm: two nodes trained, one worker was killed and started again, a job ran out of time and went on"
