#!/usr/bin/env bash
# net_rig.sh: nodes reach each other through limited links that count, share no memory, refuse to be taken from
# who uses them, and go without a trace. Exit code 77: this machine gives no namespaces, or a rig is in use.
set -euo pipefail

rig=$(dirname "$0")/net_rig.sh
readonly rig state=/run/speedo-rig

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# expect CODE COMMAND...: that it ends so.
expect() {
  local code=0
  "${@:2}" >/dev/null 2>&1 || code=$?
  [ "$code" -eq "$1" ] || fail "'${*:2}' ended with $code instead of $1"
}

left() { find /run/netns -name 'speedo-rig-*' 2>/dev/null | wc -l; }

build() {
  local code=0
  "$rig" up 3 50mbit || code=$?
  if [ "$code" -eq 75 ] || [ "$code" -eq 77 ]; then
    echo "skipped: no rig can be built here now"
    exit 77
  fi
  [ "$code" -eq 0 ] || fail "up ended with $code"
}

# send_to_2 BYTES NODE...: from each of the nodes at once, through TCP to node 2, where all must arrive.
send_to_2() {
  local payload=$1
  shift
  "$rig" in 2 python3 -c "
import socket, threading
counts, readers = [0] * $#, []
def read(connection, index):
    while data := connection.recv(1 << 16):
        counts[index] += len(data)
with socket.create_server(('10.79.0.2', 5000)) as server:
    print('listening', flush=True)
    for index in range($#):
        readers.append(threading.Thread(target=read, args=(server.accept()[0], index)))
        readers[-1].start()
for reader in readers:
    reader.join()
print(sum(counts))" | {
    read -r _
    for node; do
      "$rig" in "$node" python3 -c "
import socket
with socket.create_connection(('10.79.0.2', 5000)) as connection:
    connection.sendall(bytes($payload))" &
    done
    wait
    read -r count
    [ "$count" -eq $((payload * $#)) ] || fail "$count of $# times $payload bytes arrived"
  }
}

counted() { "$rig" bytes | awk -v node="$1" -v field="$2" '$1 == node { print $field }'; }

# held_back NETWORK DEVICE: whether the link's limit made packets wait.
held_back() {
  [ "$(tc -n "$1" -s qdisc show dev "$2" | sed -n 's/.*overlimits \([0-9]*\).*/\1/p')" -gt 0 ] ||
    fail "nothing waited in $1 at $2"
}

check_network() {
  local payload=5000000 sent received back
  send_to_2 "$payload" 1
  sent=$(counted 1 3) received=$(counted 2 2) back=$(counted 2 3)
  for count in "$sent" "$received"; do
    if [ "$count" -lt "$payload" ] || [ "$count" -gt $((payload * 11 / 10)) ]; then
      fail "$payload bytes were sent and $count counted"
    fi
  done
  [ "$back" -lt $((payload / 10)) ] || fail "$back bytes went back"
  held_back speedo-rig-1 eth0
  send_to_2 "$payload" 1 3
  held_back speedo-rig-hub port2
}

check_memory() {
  "$rig" in 1 touch /dev/shm/of_one
  [ -z "$("$rig" in 2 ls /dev/shm)" ] || fail "node 2 sees what node 1 has in /dev/shm"
  [ "$("$rig" in 1 ls /dev/shm)" = of_one ] || fail "two programs of node 1 see different files"
  [ ! -e /dev/shm/of_one ] || fail "the machine sees what node 1 has in /dev/shm"
}

# check_sockets: a unix socket without a file, as processes that share memory have, is found in its node alone.
check_sockets() {
  local name=speedo-rig-test-$$ pid
  local call="import socket; socket.socket(socket.AF_UNIX).connect('\\0$name')"
  "$rig" in 1 python3 -c "
import socket, time
with socket.socket(socket.AF_UNIX) as door:
    door.bind('\\0$name')
    door.listen()
    open('/dev/shm/listening', 'w').close()
    time.sleep(100)" &
  pid=$!
  until "$rig" in 1 test -e /dev/shm/listening; do sleep 0.1; done
  expect 0 "$rig" in 1 python3 -c "$call"
  expect 1 "$rig" in 2 python3 -c "$call"
  expect 1 python3 -c "$call"
  kill "$pid"
  wait "$pid" || true
}

# The rig's owner is this script, which another's `up` and `down` must leave its rig. Both are called by a
# process that this one did not start.
check_owner() {
  local file
  file=$(mktemp)
  for action in "up 1 1gbit" down; do
    setsid --fork sh -c "while [ \"\$(sed -n 's/^PPid:\t//p' /proc/\$\$/status)\" = $1 ]; do :; done
      '$rig' $action 2>/dev/null; echo \$? >'$file'"
    until [ -s "$file" ]; do sleep 0.1; done
    [ "$(cat "$file")" -eq 75 ] || fail "another process's '$action' ended with $(cat "$file")"
    : >"$file"
  done
  rm "$file"
  [ "$(left)" -eq 4 ] || fail "another process changed the rig"
}

# A rig whose owner has ended goes with the next one, and with it what runs there.
check_stale() {
  local pid
  bash -c "'$rig' up 4 1gbit; :"
  "$rig" in 4 sleep 1000 &
  pid=$!
  until [ "$(cat "/proc/$pid/comm")" = sleep ]; do sleep 0.1; done
  build
  if wait "$pid"; then fail "what ran in a stale rig ended by itself"; fi
  [ "$(left)" -eq 4 ] || fail "a stale rig's nodes are still there"
}

# A rig whose building fails half-way, here for want of a tool, is not left standing.
check_failure() {
  local folder
  folder=$(mktemp -d)
  ln -s /bin/false "$folder/tc"
  expect 1 env "PATH=$folder:$PATH" "$rig" up 2 1gbit
  rm -r "$folder"
  if [ "$(left)" -ne 0 ] || [ -e "$state" ]; then fail "a rig that could not be built is left"; fi
}

expect 2 "$rig"
for arguments in "0 1gbit" "65 1gbit" "2 0mbit" "2 1gb" "x 1gbit" "2"; do
  # shellcheck disable=SC2086 # two words
  expect 2 "$rig" up $arguments
done
build
trap '"$rig" down' EXIT
expect 2 "$rig" in 1
expect 69 "$rig" in 4 true
expect 5 "$rig" in 2 sh -c 'exit 5'
check_network
check_memory
check_sockets
check_owner $$
"$rig" down
trap - EXIT
expect 69 "$rig" in 1 true
expect 69 "$rig" bytes
check_stale
"$rig" down
check_failure
if [ "$(left)" -ne 0 ] || [ -e "$state" ]; then fail "down leaves something"; fi
if grep -q speedo-rig /proc/self/mountinfo; then fail "down leaves mounts"; fi
echo "net_rig: all right"
