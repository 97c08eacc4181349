# shellcheck shell=bash
# Shell functions of the get_data.sh scripts; source this file.

# have FILE SHA256: whether the file is there and genuine.
have() { [ -f "$1" ] && echo "$2  $1" | sha256sum --check --status; }

# check FILE SHA256: ends the script if the file is not genuine.
check() {
  have "$1" "$2" && return 0
  rm -f "$1"
  echo "$1: other checksum than expected, removed; run the script again" >&2
  exit 1
}

# obtain LOCAL URL TARGET: copies LOCAL, or downloads URL if LOCAL is empty.
obtain() {
  if [ -n "$1" ]; then
    cp "$1" "$3"
  else
    echo "Downloading $2" >&2
    curl --fail --location --silent --show-error --retry 3 --output "$3.part" "$2"
    mv "$3.part" "$3"
  fi
}

# speedo_program: prints the program: of $SPEEDO_BIN_DIR, else of the build here, else of the PATH.
speedo_program() {
  if [ -n "${SPEEDO_BIN_DIR:-}" ] || [ -x build/bin/speedo ]; then
    echo "${SPEEDO_BIN_DIR:-build/bin}/speedo"
  else
    echo speedo
  fi
}
