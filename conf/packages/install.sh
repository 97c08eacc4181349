# shellcheck shell=bash
# Shell functions for the scripts that set a Debian machine up; source this file.

# as_root COMMAND...: runs it with the rights that apt needs.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1; then
    sudo "$@"
  else
    echo "This needs root or sudo: $*" >&2
    return 1
  fi
}

# missing_packages NAME...: prints those that are not installed.
missing_packages() {
  local name
  for name in "$@"; do
    dpkg-query -W -f='${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed || echo "$name"
  done
}

# apt_lists_know NAME...: whether apt's lists, as they are, hold a candidate for every name.
apt_lists_know() {
  local name
  for name in "$@"; do
    apt-cache policy "$name" 2>/dev/null | grep -q 'Candidate: [0-9]' || return 1
  done
}

# apt_install NAME...
apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" \
    >/dev/null
}

# install_packages LIST: installs what is missing of a list, one package a line, '#' for comments.
install_packages() {
  local missing
  # shellcheck disable=SC2046 # One word per package is wanted.
  mapfile -t missing < <(missing_packages $(sed 's/#.*//' "$1"))
  [ "${#missing[@]}" -gt 0 ] || return 0
  echo "Installing: ${missing[*]}" >&2
  apt_lists_know "${missing[@]}" || as_root apt-get update -qq
  # Lists that are too old name packages that the mirror no longer has.
  apt_install "${missing[@]}" || { as_root apt-get update -qq && apt_install "${missing[@]}"; }
}
