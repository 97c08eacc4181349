#!/usr/bin/env bash
# The 1,797 handwritten digits of 8 x 8 pixels (UCI, Alpaydin and Kaynak 1998) that Debian ships in its
# package python3-sklearn, shuffled and cut into 1,200 for training and 597 for testing.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=examples/digits
source examples/fetch.sh
speedo=$(speedo_program)
csv=$folder/digits.csv.gz
sha256=46abec6b12486ad9e51943373abcf22bbea1b5a51a1619b361570d8893f1464a

is_genuine() { [ -f "$1" ] && echo "$sha256  $1" | sha256sum --check --status; }

if ! is_genuine "$csv"; then
  temporary=$(mktemp -d)
  trap 'rm -rf "$temporary"' EXIT
  chmod 755 "$temporary"
  source conf/packages/install.sh
  # Only the one package is unpacked, nothing is installed.
  apt_lists_know python3-sklearn || as_root apt-get update -qq
  (cd "$temporary" && apt-get -qq -o APT::Sandbox::User= download python3-sklearn)
  dpkg-deb -x "$temporary"/python3-sklearn_*.deb "$temporary/unpacked"
  cp "$(find "$temporary/unpacked" -name digits.csv.gz)" "$csv"
  is_genuine "$csv" || { echo "$csv has another checksum than expected" >&2; exit 1; }
fi

if [ ! -f "$folder/digits_train_lmdb/data.mdb" ] || [ ! -f "$folder/digits_test_lmdb/data.mdb" ]; then
  "$speedo" convert csv "$csv" "$folder/digits_train_lmdb" --test-output "$folder/digits_test_lmdb" \
    --shape 1,8,8 --shuffle 1 --train-count 1200 --force
fi
