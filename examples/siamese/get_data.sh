#!/usr/bin/env bash
# Pairs of the images that examples/mnist fetches, as two LMDBs.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=examples/siamese
source examples/fetch.sh
speedo=$(speedo_program)
examples/mnist/get_data.sh

make() {
  examples/siamese/pairs.py "examples/mnist/$2-images-idx3-ubyte" \
    "examples/mnist/$2-labels-idx1-ubyte" "$folder/$1"
  "$speedo" convert idx "$folder/$1-images-idx3-ubyte" "$folder/$1-labels-idx1-ubyte" \
    "$folder/pairs_$1_lmdb" --force
}
[ -f "$folder/pairs_train_lmdb/data.mdb" ] || make train train
[ -f "$folder/pairs_test_lmdb/data.mdb" ] || make test t10k
