#!/usr/bin/env bash
# CIFAR-10 as two LMDBs and the mean image. $SPEEDO_DATA_DIR/cifar-10, if set, holds the .bin.xz files;
# else the authors' archive is downloaded.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=examples/cifar10
archive=cifar-10-binary.tar.gz
site=https://www.cs.toronto.edu/~kriz/$archive
source examples/fetch.sh
speedo=$(speedo_program)

# Of the unpacked files.
sums=$(cat <<'SUMS'
cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5 data_batch_1.bin
a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed data_batch_2.bin
bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67 data_batch_3.bin
014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48 data_batch_4.bin
755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add data_batch_5.bin
8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b test_batch.bin
SUMS
)
while read -r sum name; do
  have "$folder/$name" "$sum" && continue
  if [ -n "${SPEEDO_DATA_DIR:-}" ]; then
    xz -dc "$SPEEDO_DATA_DIR/cifar-10/$name.xz" >"$folder/$name"
  else
    [ -f "$folder/$archive" ] || obtain "" "$site" "$folder/$archive"
    tar -xzf "$folder/$archive" -C "$folder" --strip-components=1 "cifar-10-batches-bin/$name"
  fi
  check "$folder/$name" "$sum"
done <<<"$sums"
rm -f "$folder/$archive"

[ -f "$folder/cifar10_train_lmdb/data.mdb" ] ||
  "$speedo" convert cifar "$folder"/data_batch_{1,2,3,4,5}.bin "$folder/cifar10_train_lmdb" --force
[ -f "$folder/cifar10_test_lmdb/data.mdb" ] ||
  "$speedo" convert cifar "$folder/test_batch.bin" "$folder/cifar10_test_lmdb" --force
[ -f "$folder/mean.binaryproto" ] ||
  "$speedo" mean "$folder/cifar10_train_lmdb" "$folder/mean.binaryproto"
