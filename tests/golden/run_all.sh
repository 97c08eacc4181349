#!/bin/sh
# run_all.sh GOLDEN_RUNNER [OPTIONS]: runs it on the whole set of fixtures: golden/ in what
# SPEEDO_SHARED_DIR names, else in `shared` beside the checkout. Without them: says so, exit code 77
# (skipped).
folder=${SPEEDO_SHARED_DIR:-$(dirname "$0")/../../../shared}/golden
if [ ! -d "$folder" ]; then
  echo "skipped: golden_all: there is no $folder; set SPEEDO_SHARED_DIR"
  exit 77
fi
echo "larger set of fixtures: $folder"
exec "$@" "$folder"
