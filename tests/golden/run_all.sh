#!/bin/sh
# run_all.sh GOLDEN_RUNNER [OPTIONS]: runs it on the whole set of fixtures, $SPEEDO_SHARED_DIR/golden.
# Without them: says so, exit code 77 (skipped).
folder=$SPEEDO_SHARED_DIR/golden
if [ -z "$SPEEDO_SHARED_DIR" ] || [ ! -d "$folder" ]; then
  echo "skipped: SPEEDO_SHARED_DIR names no folder with golden/"
  exit 77
fi
exec "$@" "$folder"
