#!/usr/bin/env bash
# What the digits' net has in its last hidden layer for each image, and the labels, as databases.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=examples/features
source examples/fetch.sh
speedo=$(speedo_program)
examples/digits/get_data.sh
weights=examples/digits/digits_iter_500.caffemodel
[ -f "$weights" ] || "$speedo" train -solver examples/digits/digits_solver.prototxt

# extract PHASE BATCHES SIZE: extract_features reads the data of the TEST phase.
extract() {
  sed "s/digits_test_lmdb/digits_$1_lmdb/; s/batch_size: 199/batch_size: $3/" \
    examples/digits/digits_train_test.prototxt >"$folder/$1.prototxt"
  "$speedo" extract_features "$weights" "$folder/$1.prototxt" ip1,label \
    "$folder/ip1_$1_lmdb,$folder/label_$1_lmdb" "$2" lmdb
  rm "$folder/$1.prototxt"
}
[ -f "$folder/ip1_train_lmdb/data.mdb" ] || extract train 24 50
[ -f "$folder/ip1_test_lmdb/data.mdb" ] || extract test 3 199
