#!/usr/bin/env bash
# Makes the databases of these nets of a folder of your own, which has a folder of images for each class:
#
#     examples/imagenet/prepare_folder.sh FOLDER [ONE_IN]
#
# One image in ONE_IN (10) is for validation, by an order with a fixed seed. Labels are the places of the classes'
# names in examples/imagenet/classes.txt, from 0 on. Images are stretched to 256 x 256 and stored as JPEG.
# Needs python3.
set -euo pipefail
if [ ! -d "${1:-}" ]; then echo "usage: $0 FOLDER [ONE_IN]" >&2; exit 2; fi
images=$(cd "$1" && pwd) one_in=${2:-10}
cd "$(dirname "$0")/../.."

target=examples/imagenet
source examples/fetch.sh
speedo=$(speedo_program)
(cd "$images" && find . -mindepth 1 -maxdepth 1 \( -type d -o -type l \) -printf '%f\n') | LC_ALL=C sort >"$target/classes.txt"
[ -s "$target/classes.txt" ] || { echo "$images has no folders, one for each class" >&2; exit 1; }

lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT
label=0
while read -r class; do
  (cd "$images" && find -L "$class" -type f -printf "%p $label\n") | LC_ALL=C sort >>"$lists/all"
  label=$((label + 1))
done <"$target/classes.txt"
python3 -c 'import random, sys
lines = sys.stdin.buffer.readlines()
random.Random(1).shuffle(lines)
sys.stdout.buffer.writelines(lines)' <"$lists/all" >"$lists/shuffled"
awk -v every="$one_in" -v folder="$lists" '{ print > (folder (NR % every == 0 ? "/val" : "/train")) }' \
  "$lists/shuffled"

for part in train val; do
  "$speedo" convert_imageset --resize_height=256 --resize_width=256 --encoded --encode_type=jpg --force \
    "$images/" "$lists/$part" "$target/imagenet_${part}_lmdb"
done
echo "$label classes. Give the last layer of the net a name of its own and num_output: $label, and the solver" \
  "a test_iter of $(wc -l <"$lists/val") images by the TEST batch_size."
