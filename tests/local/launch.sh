#!/usr/bin/env bash
# speedo launch over ssh: two network namespaces with an sshd each are the hosts, a third one is where it
# is called. Argument: the folder of the build. Exit code 77: this machine gives no namespaces.
set -euo pipefail

bin=$1/bin
skip() {
  echo "skipped: this needs $*"
  exit 77
}

if [ "$(id -u)" -ne 0 ] || ! unshare --net --mount true 2>/dev/null; then skip "root and namespaces"; fi
for program in ip ssh ssh-keygen redis-server; do
  command -v "$program" >/dev/null || skip "$program (conf/packages/test.txt)"
done

work=$(mktemp -d)
readonly work id=sl$$ names=(head node1 node2) subnet=10.77.0
# shellcheck source=tests/local/namespaces.sh
source "$(dirname "$0")/namespaces.sh"
export TMPDIR=$work/tmp
mkdir "$TMPDIR" "$work/a folder" "$work/home"
launched=

clean_up() {
  remove_network
  remove_folder "$work"
}
trap clean_up EXIT

fail() {
  echo "FAILED: $*" >&2
  if [ -f "$work/log" ]; then tail -n 20 "$work/log" >&2; fi
  exit 1
}

# find_sshd: sets `sshd`. Its package is only unpacked, as it would start a server for everybody.
find_sshd() {
  sshd=$(command -v sshd || true)
  if [ -n "$sshd" ]; then return; fi
  (cd "$work" && apt-get -qq -o APT::Sandbox::User= download openssh-server >/dev/null 2>&1 &&
    dpkg-deb -x openssh-server_*.deb unpacked) || skip "sshd, whose package cannot be fetched"
  sshd=$work/unpacked/usr/sbin/sshd
}

# The hosts' sshd: keys of this test's own, nobody else gets in; the user that it wants in their view alone, and
# an empty home there for who logs in, whose own start files may do anything.
start_sshd() {
  local name
  awk -F : -v OFS=: -v home="$work/home" '$1 == "root" { $6 = home } { print }' /etc/passwd >"$work/passwd"
  grep -q ^sshd: /etc/passwd || echo "sshd:x:$((60000 + $$ % 5000)):65534::/run/sshd:/usr/sbin/nologin" >>"$work/passwd"
  ssh-keygen -q -t ed25519 -N '' -f "$work/host_key"
  ssh-keygen -q -t ed25519 -N '' -f "$work/key"
  cp "$work/key.pub" "$work/authorized_keys"
  printf '10.77.0.%s %s\n' 2 "$(cat "$work/host_key.pub")" 3 "$(cat "$work/host_key.pub")" \
    >"$work/known_hosts"
  cat >"$work/sshd_config" <<END
HostKey $work/host_key
AuthorizedKeysFile $work/authorized_keys
StrictModes no
UsePAM no
PidFile none
PermitRootLogin prohibit-password
END
  for name in node1 node2; do
    # shellcheck disable=SC2016 # Another shell expands it.
    ip netns exec "$id-$name" bash -euc 'mount --bind "$1/passwd" /etc/passwd
      mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd
      exec "$2" -f "$1/sshd_config" -E "$1/$3.log"' sshd "$work" "$sshd" "$name"
  done
}

write_job() { write_noise "$work/solver.prototxt" "$work/snap" "$1"; }

# launch FLAG...: from the head's namespace.
launch() {
  ip netns exec "$id-head" "$bin/speedo" launch --ssh-options \
    "-F /dev/null -i $work/key -o UserKnownHostsFile=$work/known_hosts" "$@" 2>"$work/log"
}

# result CODE FLAG...: a launch that ends by itself, with that exit code.
result() {
  local expected=$1 code=0
  shift
  launch "$@" >"$work/result" || code=$?
  [ "$code" -eq "$expected" ] || fail "speedo launch $*: exit code $code, expected $expected"
}

nobody_works() { [ -z "$(workers_on node1)$(workers_on node2)" ]; }

# in_log TEXT
in_log() { grep -q -- "$1" "$work/log" 2>/dev/null; }

hosts_are_tried() {
  write_job 60
  result 0 --hosts "$work/hosts" --solver "$work/solver.prototxt" --dry-run
  grep -q "host 10.77.0.2" "$work/result" || fail "--dry-run does not name the host"
  printf '%s\n' "10.77.0.2" "10.77.0.9" "10.77.0.3 program=/no/such/worker" >"$work/bad_hosts"
  result 1 --hosts "$work/bad_hosts" --solver "$work/solver.prototxt" --dry-run
  [ "$(grep -c "^problem" "$work/result")" -ge 2 ] || fail "--dry-run finds: $(cat "$work/result")"
  grep -q "/no/such/worker" "$work/result" || fail "--dry-run does not name the missing program"
}

# A host that does not answer: none starts, or the others do.
hosts_that_do_not_answer() {
  cat "$work/hosts" >"$work/more_hosts"
  echo "10.77.0.9" >>"$work/more_hosts"
  result 69 --hosts "$work/more_hosts" --solver "$work/solver.prototxt" --require all
  nobody_works || fail "--require all has started workers"
  in_log "10.77.0.9" || fail "the error does not name the host"
  result 0 --hosts "$work/more_hosts" --solver "$work/solver.prototxt" --sync --json
  grep -q '"workers":3' "$work/result" || fail "not all workers took part: $(cat "$work/result")"
  grep -q '"accuracy":1.0' "$work/result" || fail "not trained: $(cat "$work/result")"
}

# restarted COUNT: so many workers were started again.
restarted() { [ "$(grep -c "started again (pid" "$work/log")" -ge "$1" ]; }

# What was drawn is in no command line, no log, and no environment but the workers' own.
secrets_are_kept() {
  local name secret place
  for name in redis.password token; do
    secret=$(cat "$TMPDIR"/speedo-run-*/"$name")
    [ "${#secret}" -ge 32 ] || fail "no $name was drawn"
    for place in /proc/[0-9]*/cmdline /proc/[0-9]*/environ "$work"/log "$TMPDIR"/speedo-run-*/*.log; do
      if grep -qaF -- "$secret" "$place" 2>/dev/null; then fail "the $name is in $place"; fi
    done
  done
}

# Workers that are killed, and connections that are cut, are noticed at both ends.
deaths_are_noticed() {
  local before ssh
  write_job 100000000
  rm "$work/log"  # of an earlier training
  launch --hosts "$work/hosts" --solver "$work/solver.prototxt" --sync --max-restarts 5 \
    >"$work/result" &
  launched=$!
  eventually 100 "training goes on" in_log "Iteration 20"
  secrets_are_kept
  workers_on node1 | xargs kill -KILL
  eventually 100 "a worker that was killed is started again" restarted 1
  eventually 100 "it works" works_on node1
  before=$(workers_on node2)
  for ssh in $(processes head); do
    if grep -qa "^ssh.*root@10.77.0.3" "/proc/$ssh/cmdline"; then kill -KILL "$ssh"; fi
  done
  eventually 100 "a worker whose connection was cut ends" test ! -e "/proc/$before"
  eventually 100 "it is started again" restarted 2
  pkill -TERM -P "$launched"
  wait "$launched" || fail "a launch that was asked to stop ends with $?"
  eventually 100 "all workers end" nobody_works
  [ -z "$(processes head)" ] || fail "processes are left: $(processes head)"
  compgen -G "$work/snap_iter_*.caffemodel" >/dev/null || fail "no snapshot was written"
  compgen -G "$TMPDIR/speedo-*" >/dev/null && fail "temporary folders are left"
  return 0
}

# Features that the hosts extract, each in its folder, are those of one process here.
features_are_extracted_there() {
  local model=$work/snap_iter_60.caffemodel speedo=$bin/speedo
  write_job 60
  "$speedo" train -solver "$work/solver.prototxt" 2>"$work/log"
  local net=$work/net.prototxt
  sed -n '/^net_param { /,$p' "$work/solver.prototxt" | sed -e 's/^net_param { //' -e '$s/ }$//' >"$net"
  "$speedo" extract_features "$model" "$net" ip "$work/here" 12 datumfile 2>"$work/log"
  ip netns exec "$id-head" "$speedo" extract_features "$model" "$net" ip "$work/there" 12 datumfile \
    --hosts "$work/hosts" --ssh-options \
    "-F /dev/null -i $work/key -o UserKnownHostsFile=$work/known_hosts" 2>"$work/log" ||
    fail "extract_features --hosts ends with $?"
  cmp "$work/here" "$work/there" || fail "features of other machines differ"
}

find_sshd
make_network
start_sshd
cat >"$work/hosts" <<END
# two workers on one host, one on the other, each host with its own words
10.77.0.2 slots=2 threads=2 program=$bin/speedo-worker folder="$work/a folder"
root@10.77.0.3:22 program=$bin/speedo-worker
END
eventually 100 "sshd listens" ip netns exec "$id-head" bash -c ': </dev/tcp/10.77.0.3/22'
hosts_are_tried
hosts_that_do_not_answer
features_are_extracted_there
deaths_are_noticed
echo "launched over ssh: tried, trained, extracted, killed, cut, stopped"
