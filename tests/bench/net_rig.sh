#!/usr/bin/env bash
# Nodes on this machine, for measurements: each is a network and an IPC namespace with an empty /dev/shm of its
# own, joined by a bridge through links of the given rate, each way. Needs root.
#
#   net_rig.sh up N RATE      N nodes, 1 to 64, with links of RATE, as 200mbit or 10gbit; says the addresses
#   net_rig.sh in K CMD...    runs CMD in node K, in place of this process; node K is 10.79.0.K on eth0
#   net_rig.sh bytes          a line a node: its number, bytes received and bytes sent by its eth0 so far
#   net_rig.sh down           ends what runs in the nodes and removes them; nothing stays
#   net_rig.sh down --force   the same with a rig that another process built and may still use
#
# There is one rig on a machine, and one more for each number in SPEEDO_RIG. It belongs to the process that called
# `up`, and whoever comes after the end of that process removes it. Nodes see the same files, but for /dev/shm; the rate counts whole frames, of
# which 95 % are TCP's payload. Programs of node K find eth0 and lo, no other node's /dev/shm, no unix socket
# without a file of another node (through which processes of one machine share memory), no host.
#
# Exit codes: 2 usage, 69 no such rig or node, 75 another's rig stands, 77 no root or no namespaces here.
set -euo pipefail

readonly id=speedo-${SPEEDO_RIG:+$SPEEDO_RIG-}rig subnet=10.79.0 nodes_max=64
readonly state=/run/$id

stop() {
  local code=$1
  shift
  echo "net_rig.sh: $*" >&2
  exit "$code"
}

# started_at PID: when that process began, in ticks since the boot; nothing if there is none.
started_at() {
  local stat fields
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
  read -ra fields <<<"${stat##*) }"
  echo "${fields[19]}"
}

# owner: the process that built the rig, if it still runs.
owner() {
  local pid start
  [ -s "$state/owner" ] || return 0
  read -r pid start <"$state/owner"
  if [ "$(started_at "$pid")" = "$start" ]; then echo "$pid"; fi
}

# is_ours PID: whether this script was called by that process, or by one that it started.
is_ours() {
  local pid=$PPID
  while [ "${pid:-0}" -gt 1 ]; do
    if [ "$pid" = "$1" ]; then return 0; fi
    pid=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status" 2>/dev/null)
  done
  return 1
}

refuse_if_used() {
  local pid
  pid=$(owner)
  if [ -z "$pid" ] || is_ours "$pid"; then return; fi
  stop 75 "a rig stands that belongs to process $pid ($(cat "/proc/$pid/comm")), which still runs: wait" \
    "for it, or remove its rig with 'net_rig.sh down --force'"
}

# processes: those in the rig's namespaces, also where their names are not to be seen from here.
processes() {
  [ -s "$state/networks" ] || return 0
  find /proc/[0-9]*/ns/net -printf '%l %p\n' 2>/dev/null |
    awk 'NR == FNR { of_rig[$1]; next } $1 in of_rig { split($2, part, "/"); print part[3] }' \
      "$state/networks" - || true
}

# In a trap, `return` alone would give the status of what was trapped.
end_processes() {
  local signal i
  for signal in TERM KILL; do
    processes | xargs --no-run-if-empty kill "-$signal" 2>/dev/null || true
    for ((i = 0; i < 20; ++i)); do
      if [ -z "$(processes)" ]; then return 0; fi
      sleep 0.1
    done
  done
  stop 70 "processes $(processes | tr '\n' ' ')in the rig's nodes do not end"
}

# networks: names of the rig's, also where another mount namespace has the mounts.
networks() { find /run/netns -maxdepth 1 -name "$id-*" -printf '%f\n' 2>/dev/null || true; }

remove() {
  local file name
  end_processes
  for file in "$state"/*.shm "$state"/*.ipc "$state"; do
    umount "$file" 2>/dev/null || true
  done
  for name in $(networks); do
    ip netns delete "$name" 2>/dev/null || rm -f "/run/netns/$name"
  done
  rm -rf "$state"
}

# limit NETWORK DEVICE RATE: what leaves the device waits for tokens, at most 10 ms long. One millisecond's bytes
# may leave at once, and always the kernel's largest piece of 64 KiB, which then counts as one frame.
limit() {
  local burst
  burst=$(awk -v rate="${3,,}" 'BEGIN {
    unit = 1e3
    if (rate ~ /mbit$/) unit = 1e6
    if (rate ~ /gbit$/) unit = 1e9
    bytes = rate * unit / 8 / 1000
    printf "%d", bytes < 70000 ? 70000 : bytes }')
  tc -n "$1" qdisc add dev "$2" root tbf rate "${3,,}" burst "$burst" latency 10ms
}

add_network() {
  ip netns add "$id-$1"
  stat -L -c 'net:[%i]' "/run/netns/$id-$1" >>"$state/networks"
}

# add_node K RATE. Addresses of IPv6 would send packets of their own.
add_node() {
  local node=$1 rate=$2 name=$id-$1
  add_network "$node"
  ip -n "$id-hub" link add "port$node" type veth peer name eth0 netns "$name"
  ip -n "$id-hub" link set "port$node" addrgenmode none
  ip -n "$id-hub" link set "port$node" master bridge up
  ip -n "$name" link set eth0 addrgenmode none
  ip -n "$name" address add "$subnet.$node/24" dev eth0
  ip -n "$name" link set eth0 up
  ip -n "$name" link set lo up
  limit "$name" eth0 "$rate"
  limit "$id-hub" "port$node" "$rate"
  touch "$state/$node.ipc"
  unshare --ipc="$state/$node.ipc" true
  mkdir "$state/$node.shm"
  mount -t tmpfs -o mode=1777 "$name" "$state/$node.shm"
}

# claim: makes the rig's folder, with its owner in it from the first moment on.
claim() {
  local draft
  draft=$(mktemp -d "$state.XXXXXX")
  echo "$PPID $(started_at "$PPID")" >"$draft/owner"
  if ! mv -T "$draft" "$state" 2>/dev/null; then
    rm -rf "$draft"
    stop 75 "somebody else has built a rig just now"
  fi
}

up() {
  local count=${1:-} rate=${2:-} node
  if ! [[ $count =~ ^[1-9][0-9]?$ ]] || [ "$count" -gt "$nodes_max" ]; then
    stop 2 "up N RATE: N is a number from 1 to $nodes_max, not '$count'"
  fi
  if ! [[ ${rate,,} =~ ^[0-9]+(\.[0-9]+)?[kmg]bit$ ]] || [[ $rate =~ ^[0.]+[^0-9.] ]]; then
    stop 2 "up N RATE: RATE is written as 200mbit or 10gbit and above 0, not '$rate'"
  fi
  if [ "$(id -u)" -ne 0 ] || ! unshare --net --mount --ipc true 2>/dev/null; then
    stop 77 "this needs root and namespaces"
  fi
  if ! command -v tc >/dev/null; then stop 77 "this needs ip and tc: install Debian's iproute2"; fi
  refuse_if_used
  if [ -e "$state" ] || [ -n "$(networks)" ]; then
    remove
    echo "net_rig.sh: a rig that stood here is removed" >&2
  fi
  claim
  trap remove EXIT
  mount --bind "$state" "$state"
  mount --make-private "$state"
  add_network hub
  ip -n "$id-hub" link add bridge type bridge
  ip -n "$id-hub" link set bridge addrgenmode none
  ip -n "$id-hub" link set bridge up
  for ((node = 1; node <= count; ++node)); do
    add_node "$node" "$rate"
  done
  trap - EXIT
  echo "$count nodes, $subnet.1 to $subnet.$count, ${rate,,} each way"
}

run_in() {
  local node=${1:-}
  if ! [[ $node =~ ^[1-9][0-9]?$ ]] || [ $# -lt 2 ]; then stop 2 "in K CMD...: a node and a command"; fi
  shift
  [ -e "$state/owner" ] || stop 69 "there is no rig: build one with 'net_rig.sh up N RATE'"
  [ -e "$state/$node.shm" ] || stop 69 "the rig has no node $node"
  if [ "$(stat -f -c %T "$state/$node.ipc")" != nsfs ]; then
    stop 69 "the rig was built in another mount namespace: call 'in' where 'up' was called"
  fi
  # A mount namespace for each program: some kernels refuse now and then to keep one by a file.
  # shellcheck disable=SC2016 # the inner shell expands
  exec nsenter --net="/run/netns/$id-$node" --ipc="$state/$node.ipc" \
    unshare --mount --propagation slave \
    sh -c 'mount --bind "$0" /dev/shm && exec "$@"' "$state/$node.shm" "$@"
}

bytes() {
  local node
  [ -e "$state/owner" ] || stop 69 "there is no rig: build one with 'net_rig.sh up N RATE'"
  for ((node = 1; node <= nodes_max; ++node)); do
    [ -e "$state/$node.shm" ] || break
    nsenter --net="/run/netns/$id-$node" cat /proc/net/dev |
      awk -v node="$node" '$1 == "eth0:" { print node, $2, $10 }'
  done
}

if ! [[ ${SPEEDO_RIG:-0} =~ ^[0-9]+$ ]]; then stop 2 "SPEEDO_RIG is a number, not '$SPEEDO_RIG'"; fi
case ${1:-} in
  up) up "${@:2}" ;;
  in) run_in "${@:2}" ;;
  bytes) bytes ;;
  down)
    if [ "${2:-}" != --force ]; then refuse_if_used; fi
    remove
    ;;
  *) stop 2 "up N RATE, in K CMD..., bytes, down [--force]; see the top of this file" ;;
esac
