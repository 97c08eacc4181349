#!/bin/sh
# run_all.sh GOLDEN_RUNNER [OPTIONS]: runs it on the whole set of fixtures: $SPEEDO_SHARED_DIR/golden, or
# ../shared/golden beside the checkout. Without them: says so, exit code 77 (skipped).
folder=${SPEEDO_SHARED_DIR:-../shared}/golden
if [ ! -d "$folder" ]; then
  echo "skipped: no fixtures in $folder; set SPEEDO_SHARED_DIR to a folder that holds golden/"
  exit 77
fi
exec "$@" "$folder"
