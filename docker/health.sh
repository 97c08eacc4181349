#!/usr/bin/env bash
# Whether the programs of an image do their part, for HEALTHCHECK and probes: of those that are
# named each that is there, and one at least. A master and a Redis listen, a worker is connected to its
# master, another program runs.
#   health.sh speedo-master redis-server
#   health.sh speedo-worker
# Prints the reason and ends with 1 if not.
set -euo pipefail

readonly listening=0A  # as /proc/net/tcp writes it

# sockets PID: the inodes of its sockets, between spaces.
sockets() {
  local descriptor target
  for descriptor in "/proc/$1/fd"/*; do
    target=$(readlink "$descriptor") || continue
    if [[ $target == socket:* ]]; then printf ' %s ' "${target//[!0-9]/}"; fi
  done
}

# listens PID
listens() {
  { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null || true; } |  # There may be no IPv6.
    awk -v state="$listening" -v own="$(sockets "$1")" \
      '$4 == state && index(own, " " $10 " ") { found = 1 } END { exit !found }'
}

# has_master PID: by the file that a worker holds open as long as it has one. It may have connections
# to Redis without.
has_master() {
  local descriptor
  for descriptor in "/proc/$1/fd"/*; do
    if [[ $(readlink "$descriptor") == /memfd:speedo-connected* ]]; then return 0; fi
  done
  return 1
}

# fault PROGRAM PID: prints what keeps the process from its part, if anything.
fault() {
  case $(awk '$1 == "State:" { print $2 }' "/proc/$2/status" 2>/dev/null) in
    [Tt]) echo "is stopped" ;;
    Z | "") echo "has ended" ;;
    *)
      case $1 in
        speedo-master | redis-server) listens "$2" || echo "does not listen" ;;
        speedo-worker) has_master "$2" || echo "is not connected" ;;
      esac
      ;;
  esac
}

# check PROGRAM: 0 if a process of it does its part, 1 if none does, 2 if there is none.
check() {
  local directory reason=""
  for directory in /proc/[0-9]*; do
    [ "$(cat "$directory/comm" 2>/dev/null)" = "$1" ] || continue
    reason=$(fault "$1" "${directory#/proc/}")
    [ -n "$reason" ] || return 0
  done
  [ -n "$reason" ] || return 2
  echo "$1 $reason" >&2
  return 1
}

[ $# -gt 0 ] || { echo "usage: health.sh PROGRAM..." >&2; exit 2; }
any=0
for program; do
  code=0
  check "$program" || code=$?
  [ "$code" != 1 ] || exit 1
  [ "$code" != 0 ] || any=1
done
[ "$any" = 1 ] || { echo "$* does not run" >&2; exit 1; }
