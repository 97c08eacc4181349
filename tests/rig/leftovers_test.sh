#!/usr/bin/env bash
# A rig that is killed leaves nothing that the next one does not remove. Exit code 77: no namespaces here.
set -euo pipefail

run=$(dirname "$0")/run.sh
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# left PID: what carries the number of the rig that had it.
left() { find /run /run/netns /tmp -maxdepth 1 \( -name "speedo-$1-rig*" -o -name "speedo-rig-$1-*" \) 2>/dev/null; }

"$run" 1 --only SIGKILL --repeat 1000 "$@" >"$log" 2>&1 &
pid=$!
for ((i = 0; i < 600; ++i)); do
  if compgen -G "${TMPDIR:-/tmp}/speedo-rig-$pid-*/*/job0/log3" >/dev/null; then break; fi
  kill -0 "$pid" 2>/dev/null || break
  sleep 0.1
done
if ! kill -KILL "$pid" 2>/dev/null; then
  cat "$log"
  exit 1
fi
wait "$pid" 2>/dev/null || true
if [ ! -e "/run/speedo-$pid-rig" ]; then
  echo "skipped: no nodes can be built here"
  exit 77
fi
"$run" 32 "$@"
if [ -n "$(left "$pid")" ]; then
  echo "FAILED: a killed rig's $(left "$pid" | tr '\n' ' ')stayed" >&2
  exit 1
fi
