#!/usr/bin/env bash
# --iface on a machine with two networks: a network namespace with two interfaces. Argument: the folder of the
# build. Exit code 77: this machine gives no namespaces.
set -euo pipefail

bin=$1/bin
skip() {
  echo "skipped: this needs $*"
  exit 77
}

if [ "$(id -u)" -ne 0 ] || ! unshare --net true 2>/dev/null; then skip "root and namespaces"; fi
for program in ip redis-server redis-cli; do
  command -v "$program" >/dev/null || skip "$program (conf/packages/test.txt)"
done

work=$(mktemp -d)
readonly work id=si$$ names=(two) subnet=10.79.0
# shellcheck source=tests/local/namespaces.sh
source "$(dirname "$0")/../local/namespaces.sh"

clean_up() {
  remove_network
  remove_folder "$work"
}
trap clean_up EXIT

fail() {
  echo "FAILED: $*" >&2
  cat "$work"/*.log >&2 2>/dev/null || true
  exit 1
}

here() { ip netns exec "$id-two" "$@"; }
redis() { here redis-cli -h 10.79.0.1 "$@"; }

make_network # eth0, 10.79.0.1
ip -n "$id-two" link add eth1 type veth peer name other1
ip -n "$id-two" address add 10.79.1.1/24 dev eth1
ip -n "$id-two" link set eth1 up
ip -n "$id-two" link set other1 up

here redis-server --bind 10.79.0.1 --protected-mode no --save "" --dir "$work" >"$work/redis.log" 2>&1 &
eventually 10 "Redis" redis ping
write_noise "$work/solver.prototxt" "$work/noise" 200000

master() {
  exec ip netns exec "$id-two" "$bin/speedo-master" --solver "$work/solver.prototxt" --redis 10.79.0.1 --insecure \
    --address-file "$work/address" "$@" >"$work/master.log" 2>&1
}

if (master --iface eth7); then fail "an interface that does not exist was taken"; fi
grep -q 'eth1 10.79.1.1' "$work/master.log" || fail "the interfaces that there are were not named"
if (master --iface 10.79.0.0/16); then fail "a network with two addresses was taken"; fi
grep -q 'eth0 10.79.0.1, eth1 10.79.1.1' "$work/master.log" || fail "the two addresses were not named"
if (master --iface other1); then fail "an interface without an address was taken"; fi
grep -q 'no such network interface with an address' "$work/master.log" || fail "the want of an address was not told"

# Who has a connection to Redis, but for the one that asks.
clients() {
  redis client list | grep -v 'cmd=client|list' | sed -n 's/.* addr=\([0-9.]*\):.*/\1/p' | sort -u
}

master --iface eth1 &
master=$!
eventually 20 "the master's address" test -s "$work/address"
grep -q '^speedo://10.79.1.1:' "$work/address" || fail "announced is $(cat "$work/address")"
[ "$(clients)" = 10.79.1.1 ] || fail "the master reaches Redis from $(clients)"

here "$bin/speedo-worker" --master "$(cat "$work/address")" --iface 10.79.0.0/24 --no-shared-memory \
  >"$work/worker.log" 2>&1 &
worker=$!
eventually 20 "the worker's connection from its interface" \
  bash -c "ip netns exec $id-two redis-cli -h 10.79.0.1 client list | grep -q ' addr=10.79.0.1:.* name=speedo'"
eventually 20 "training" grep -q 'Iteration' "$work/master.log"
port=$(sed 's/.*://' "$work/address")
peers=$(here ss -Htn state established "sport = :$port" | awk '{ print $4 }' | sed 's/:.*//' | sort -u)
[ "$peers" = 10.79.0.1 ] || fail "the worker reaches the master from $peers"
kill -TERM "$master"
wait "$master" || fail "the master ended with $?"
wait "$worker" || fail "the worker ended with $?"
here "$bin/speedo" doctor --iface eth1 --redis 10.79.0.1 >"$work/doctor.log" || true
grep -q '10.79.1.1 is free' "$work/doctor.log" || fail "doctor does not look at the interface's address"
redis shutdown nosave >/dev/null 2>&1 || true
echo "passed"
