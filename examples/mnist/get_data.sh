#!/usr/bin/env bash
# MNIST as two LMDBs. $SPEEDO_DATA_DIR/mnist, if set, holds the four .gz files; else they are downloaded.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=examples/mnist
site=https://ossci-datasets.s3.amazonaws.com/mnist
source examples/fetch.sh
speedo=$(speedo_program)

# Of the unpacked files: the official archive and others pack them differently.
sums=$(cat <<'SUMS'
ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db train-images-idx3-ubyte
65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5 train-labels-idx1-ubyte
0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7 t10k-images-idx3-ubyte
ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2 t10k-labels-idx1-ubyte
SUMS
)
while read -r sum name; do
  have "$folder/$name" "$sum" && continue
  obtain "${SPEEDO_DATA_DIR:+$SPEEDO_DATA_DIR/mnist/$name.gz}" "$site/$name.gz" "$folder/$name.gz"
  gzip -dc "$folder/$name.gz" >"$folder/$name"
  rm "$folder/$name.gz"
  check "$folder/$name" "$sum"
done <<<"$sums"

convert() {
  "$speedo" convert idx "$folder/$2-images-idx3-ubyte" "$folder/$2-labels-idx1-ubyte" \
    "$folder/mnist_$1_lmdb" --force
}
[ -f "$folder/mnist_train_lmdb/data.mdb" ] || convert train train
[ -f "$folder/mnist_test_lmdb/data.mdb" ] || convert test t10k
