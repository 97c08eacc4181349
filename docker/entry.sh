#!/usr/bin/env bash
# What the images start. The first argument is the image's program; then come SpeeDO's own words, or
# the program's flags, or another program and its arguments (README.md).
set -euo pipefail

readonly speedo_port=56126 redis_port=6379
readonly secret=/run/secrets/redis_password token=/run/secrets/speedo_token
redis_conf=$(dirname "$0")/../conf/redis.conf
if [ -f /etc/speedo/redis.conf ]; then redis_conf=/etc/speedo/redis.conf; fi

program=$1
shift

# fail CODE TEXT...
fail() {
  local code=$1
  shift
  printf '%s: %s\n' "$program" "$*" >&2
  exit "$code"
}

# usage REASON
usage() {
  cat >&2 <<END
$program: $1
Usage:
  docker run ... speedo-master master MASTER-ADDRESS WORKERS [FLAGS of speedo-master]
  docker run ... speedo-worker worker MASTER-ADDRESS WORKER-ADDRESS [FLAGS of speedo-worker]
Example:
  docker run ... speedo-master master 10.0.0.1 3 --movingRate 0.5
  docker run ... speedo-worker worker 10.0.0.1 10.0.0.2
END
  exit 2
}

# Which arguments are what: a number of workers is no address, and an address no number.
is_count() { [[ $1 =~ ^[0-9]+(:[0-9]+)?$ ]]; }
is_address() {
  [[ $1 =~ ^([A-Za-z0-9._:-]*[A-Za-z0-9.]|\[[0-9A-Fa-f:.]+\](:[0-9]+)?)$ && $1 != -* ]] &&
    ! is_count "$1"
}

is_asked_for_help() { [[ " $* " =~ \ (-h|-?-help|--version)\  ]]; }

# given NAME: prints what a flag, a variable or speedo.toml says of the master's option, or fails.
given() {
  local value
  local pattern='\{"name":"'$1'","value":"(([^"\]|\\.)*)","source":"([a-z]+)"'
  [[ $settings =~ $pattern && ${BASH_REMATCH[3]} != default ]] || return 1
  value=${BASH_REMATCH[1]//\\\"/\"}
  printf '%b\n' "$value"  # JSON's other escapes are printf's, too.
}

# is_own ADDRESS: whether it is an address of this container, or a name of one.
is_own() {
  local own found
  own=" $(hostname -I 2>/dev/null || true) 127.0.0.1 ::1 "
  for found in $(getent ahosts "$1" | cut -d ' ' -f 1); do
    if [[ $own == *" $found "* ]]; then return 0; fi
  done
  return 1
}

# is_swapped MASTER WORKER: only the master's address is one of this container. A worker's name that
# says nothing to the network is none of another.
is_swapped() {
  [[ $1 != 127.* && $1 != ::1 && $1 != localhost ]] && is_own "$1" &&
    getent ahosts "$2" >/dev/null && ! is_own "$2"
}

# with_port ADDRESS PORT: the address with the port, unless it has one.
with_port() {
  case "$1" in
    *://* | \[*\]:*) echo "$1" ;;
    \[*\]) echo "$1:$2" ;;
    *:*:*) echo "[$1]:$2" ;;
    *:*) echo "$1" ;;
    *) echo "$1:$2" ;;
  esac
}

# find_secret WORDS...: names the files with Redis' password and the master's token, unless something
# else, such as a certificate among the words, gives them.
find_secret() {
  local word certified=${SPEEDO_TLS_CERT:-}
  for word; do
    [[ $word == -* ]] || continue
    word=${word%%=*}
    word=${word//[-_]/}
    [ "${word,,}" != tlscert ] || certified=yes
  done
  if [ -z "${SPEEDO_TOKEN_FILE:-}$certified" ] && [ -e "$token" ]; then
    export SPEEDO_TOKEN_FILE=$token
  fi
  if [ -z "${SPEEDO_REDIS_PASSWORD:-}${SPEEDO_REDIS_PASSWORD_FILE:-}" ] && [ -e "$secret" ]; then
    export SPEEDO_REDIS_PASSWORD_FILE=$secret
  fi
}

# read_password FILE: sets `password`, of a Redis that others reach; without a file it is the
# environment's.
read_password() {
  password=${SPEEDO_REDIS_PASSWORD:-}
  if [ -n "$1" ]; then
    [ -r "$1" ] || fail 77 "the password file '$1' cannot be read by user $(id -u)"
    IFS= read -r password <"$1" || true  # Fails at a line without an end, too.
    password=${password%$'\r'}
  fi
  if [ -n "$password" ]; then return; fi
  fail 77 "Redis is to be reached by workers, and no password is given for it: mount a file with" \
    "one as $secret (head -c 24 /dev/urandom | base64 > redis.password), or name it with" \
    "SPEEDO_REDIS_PASSWORD_FILE, or set SPEEDO_REDIS_PASSWORD, at the master and each worker;" \
    "or name a Redis that there is: --redis ADDRESS"
}

# redis_settings ADDRESSES: on standard output, so that the password is in no command line.
redis_settings() {
  local quoted=${password//\\/\\\\}
  cat "$redis_conf"
  printf 'bind %s\nport %s\ndir /tmp\nloglevel warning\nrequirepass "%s"\n' \
    "$1" "$redis_port" "${quoted//\"/\\\"}"
}

# open_settings ADDRESSES: as descriptor 3. They fit into the pipe, whose writer is waited for, so
# that what this process becomes has no child that it does not know.
open_settings() {
  exec 3< <(redis_settings "$1")
  wait "$!"
}

# start_redis ADDRESSES PROBED: a server at the addresses, one of which is asked whether it listens.
# It ends when this process does, which becomes the master.
start_redis() {
  local pid tries
  # Who listens there already would be taken for it.
  if (: <"/dev/tcp/$2/$redis_port") 2>/dev/null; then
    fail 69 "port $redis_port of $2 is in use, perhaps by the Redis of another master: name a" \
      "Redis with --redis (one serves several jobs), or stop what listens there"
  fi
  open_settings "$1"
  env --unset SPEEDO_REDIS_PASSWORD setpriv --pdeathsig TERM redis-server - <&3 >&2 &
  pid=$!
  exec 3<&-
  for ((tries = 0; tries < 200; ++tries)); do
    kill -0 "$pid" 2>/dev/null || break
    if (: <"/dev/tcp/$2/$redis_port") 2>/dev/null; then return; fi
    sleep 0.05
  done
  fail 69 "redis-server did not start at $1, port $redis_port; its reason stands above"
}

# master ADDRESS WORKERS [FLAG...]
master() {
  [ "$program" = speedo-master ] || usage "\"master\" is for the image speedo-master"
  [ $# -ge 2 ] || usage "\"master\" takes the master's address and the number of workers"
  is_address "$1" || usage "\"$1\" is no address of a master"
  is_count "$2" || usage "\"$2\" is no number of workers"
  [[ ! $1 =~ ^(\[.*\]|[^:]*):[0-9]+$ ]] ||
    usage "\"$1\" has a port, and the address alone is wanted: give the port with --port"
  local address=$1 workers=$2 bind named=()
  address=${address#\[}
  address=${address%\]}
  shift 2
  find_secret "$@"
  if is_asked_for_help "$@"; then exec speedo-master "$@"; fi
  # What is wrong with flags, the master itself tells.
  settings=$(speedo config --json master "$@" 2>/dev/null) || exec speedo-master "$@"
  # Where the address is not the container's, the engine passes its ports on to the container.
  # An interface says both.
  if ! given iface >/dev/null; then named=(--host "$address"); fi
  if ! bind=$(given bind); then
    if is_own "$address"; then bind=$address; else bind=0.0.0.0; fi
    given iface >/dev/null || set -- --bind "$bind" "$@"
  fi
  if ! given redis >/dev/null; then
    read_password "$(given redis-password-file)"
    if [ "$bind" = 0.0.0.0 ]; then
      start_redis "* -::*" 127.0.0.1
    else
      start_redis "$bind" "$bind"
    fi
    set -- --redis "$(with_port "$address" "$redis_port")" "$@"
  fi
  given port >/dev/null || set -- --port "$speedo_port" "$@"
  # Without a token whoever starts a master for workers elsewhere trusts the network between them.
  if ! given token-file >/dev/null && ! given tls-cert >/dev/null; then
    given insecure >/dev/null || set -- --insecure "$@"
  fi
  given solver >/dev/null || set -- --solver solver.prototxt "$@"
  exec speedo-master "${named[@]}" --workers "$workers" "$@"
}

# worker MASTER-ADDRESS WORKER-ADDRESS [FLAG...]
worker() {
  [ "$program" = speedo-worker ] || usage "\"worker\" is for the image speedo-worker"
  [ $# -ge 2 ] || usage "\"worker\" takes the master's address and the worker's"
  [[ $1 == *://* ]] || is_address "$1" || usage "\"$1\" is no address of a master"
  is_address "$2" || usage "\"$2\" is no address of a worker"
  if is_swapped "$1" "$2"; then
    usage "\"$1\", the first address, is this worker's own, and \"$2\" is not"
  fi
  local address=$1 own=$2
  shift 2
  find_secret "$@"
  exec speedo-worker --master "$(with_port "$address" "$speedo_port")" --host "$own" "$@"
}

# redis: the server alone, for masters and workers elsewhere.
redis() {
  [ $# -eq 0 ] || fail 2 "\"redis\" takes no arguments; its password comes from $secret"
  find_secret
  read_password "${SPEEDO_REDIS_PASSWORD_FILE:-}"
  open_settings "* -::*"
  exec env --unset SPEEDO_REDIS_PASSWORD redis-server - <&3 >&2
}

# Whoever starts the container has mounted the folder, under whatever user its files are here.
if [ -z "${SPEEDO_CONFIG:-}" ] && [ -e speedo.toml ]; then export SPEEDO_CONFIG=speedo.toml; fi

case "${1:-}" in
  master | worker | redis) "$@" ;;
  speedo | speedo-master | speedo-worker | caffe)
    find_secret "$@"
    exec "$@"
    ;;
  "" | -*)
    find_secret "$@"
    exec "$program" "$@"
    ;;
  *) usage "\"$1\" is no word that this image knows" ;;
esac
