#!/usr/bin/env bash
# Whether a program of the images does its part, for HEALTHCHECK and probes:
#   health.sh speedo-master | redis-server     it runs and listens
#   health.sh speedo-worker                    it runs and is connected
# Prints the reason and ends with 1 if not.
set -euo pipefail

readonly established=01 listening=0A  # as /proc/net/tcp writes them

# sockets PID: the inodes of its sockets, between spaces.
sockets() {
  local descriptor target
  for descriptor in "/proc/$1/fd"/*; do
    target=$(readlink "$descriptor") || continue
    if [[ $target == socket:* ]]; then printf ' %s ' "${target//[!0-9]/}"; fi
  done
}

# has_connection PID STATE
has_connection() {
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    awk -v state="$2" -v own="$(sockets "$1")" \
      '$4 == state && index(own, " " $10 " ") { found = 1 } END { exit !found }'
}

program=${1:?usage: health.sh PROGRAM}
state=$listening what="does not listen"
if [ "$program" = speedo-worker ]; then state=$established what="is not connected"; fi
reason="does not run"
for directory in /proc/[0-9]*; do
  [ "$(cat "$directory/comm" 2>/dev/null)" = "$program" ] || continue
  if grep -q '^State:.[TtZ]' "$directory/status"; then
    reason="is stopped"
  elif has_connection "${directory#/proc/}" "$state"; then
    exit 0
  else
    reason=$what
  fi
done
echo "$program $reason" >&2
exit 1
