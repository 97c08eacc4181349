#!/usr/bin/env bash
# Odd or even: the digits of examples/digits with other labels, fifty images to learn from. Those to test are the
# ones that the digits' net has not been trained on either.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=examples/finetuning
source examples/fetch.sh
speedo=$(speedo_program)
examples/digits/get_data.sh

[ -f "$folder/parity_train_lmdb/data.mdb" ] && [ -f "$folder/parity_test_lmdb/data.mdb" ] && exit
csv=$folder/parity.csv
trap 'rm -rf "$csv" "$folder/parity_all_lmdb"' EXIT
gzip -dc examples/digits/digits.csv.gz | awk -F, -v OFS=, '{ $65 %= 2; print }' >"$csv"
"$speedo" convert csv "$csv" "$folder/parity_all_lmdb" --test-output "$folder/parity_test_lmdb" \
  --shape 1,8,8 --shuffle 1 --train-count 1200 --force
"$speedo" convert db "$folder/parity_all_lmdb" "$folder/parity_train_lmdb" --count 50 --force
