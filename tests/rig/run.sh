#!/usr/bin/env bash
# The fault matrix on real processes (README.md): run.sh [ROW...] [--repeat N] [--seed S] [--build DIR]
# As root in a mount namespace of its own, so that no mount outlives it.
set -euo pipefail
rig=$(dirname "$0")/rig.py
if [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
  exec unshare --mount --propagation private python3 -B "$rig" "$@"
fi
exec python3 -B "$rig" "$@"
