#!/usr/bin/env bash
# Builds the images without an engine and proves that they work: a master with its Redis and two
# workers, each with a network and processes of its own, as the images' user and on a read-only
# root, train the digits by SpeeDO's own two commands; then again by those of compose.yaml.
#   docker/try.sh             everything from nothing, in a folder that is removed at the end
#   KEEP=1 docker/try.sh      with the images of this machine, BASE as in build.sh; leaves them there
# Needs root, the packages of conf/packages/long.txt and, for the data, a `speedo` in build/bin or
# where SPEEDO_BIN_DIR says. Ends with 77 where namespaces cannot be made.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ] || ! unshare --net --mount --pid --fork true 2>/dev/null; then
  echo "skipped: docker/try.sh needs root and the right to make namespaces"
  exit 77
fi

readonly tag=try user=10001 stop_patience=5 accuracy='accuracy = (0\.9[5-9]|1)'
readonly names=(master worker1 worker2 redis)
readonly addresses=(10.77.0.1 10.77.0.2 10.77.0.3 10.77.0.4)
id=speedo-$$
work=$(mktemp -d /var/tmp/speedo-try-XXXXXX)
password=$(head -c 24 /dev/urandom | base64)
compose=(env DATA="$work/data" PASSWORD_FILE="$work/redis.password" TOKEN_FILE="$work/job.token"
  docker-compose -f docker/compose.yaml)
declare -A root container_of starter

clean_up() {
  local status=$? name image
  set +e
  trap '' PIPE
  for name in "${names[@]}" hub; do
    ip netns pids "$id-$name" 2>/dev/null | xargs --no-run-if-empty kill -KILL
    ip netns delete "$id-$name" 2>/dev/null
  done
  wait
  for image in "${!container_of[@]}"; do
    buildah umount "${container_of[$image]}" >/dev/null
    buildah rm "${container_of[$image]}" >/dev/null
  done
  # A build that was killed leaves mounts, which removing a folder would stop at.
  if [ "${CONTAINERS_STORAGE_CONF:-}" = "$work/storage.conf" ]; then buildah rm --all >/dev/null; fi
  if [ "$status" -ne 0 ]; then tail -n 25 "$work"/*.log >&2 2>/dev/null; fi
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 141' PIPE  # Of a reader that is gone bash would die without the above.

if [ -z "${KEEP:-}" ]; then
  driver=$(buildah info --format '{{.store.GraphDriverName}}')
  printf '[storage]\ndriver = "%s"\ngraphroot = "%s"\nrunroot = "%s"\n' \
    "$driver" "$work/images" "$work/images-run" >"$work/storage.conf"
  export CONTAINERS_STORAGE_CONF=$work/storage.conf
fi

# fail TEXT
fail() {
  echo "docker/try.sh: $1" >&2
  exit 1
}
note() { echo "ok: $1"; }

# wait_for SECONDS FILE PATTERN: until a line of the file matches.
wait_for() {
  local end=$((SECONDS + $1))
  until grep -qE "$3" "$2"; do
    [ $SECONDS -lt $end ] || fail "no line '$3' in $(basename "$2") within $1 s"
    sleep 0.1
  done
}

# unpack IMAGE: mounts its root file system, with the mount points that an engine would add.
unpack() {
  container_of[$1]=$(buildah from "localhost/$1:$tag")
  root[$1]=$(buildah mount "${container_of[$1]}")
  mkdir -p "${root[$1]}/run/secrets"
  touch "${root[$1]}/run/secrets/redis_password" "${root[$1]}/etc/hosts"
}

# check_config IMAGE: what it tells engines.
check_config() {
  local told version
  version=$(sed -n 's/^project(SpeeDO VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
  told=$(buildah inspect --type image --format '{{with .Docker.Config}}{{.User}} {{.StopSignal}}
{{- with .Healthcheck}} {{.Test}}{{end}}
{{- " "}}{{index .Labels "org.opencontainers.image.version"}}{{end}}' "localhost/$1:$tag")
  [ "$told" = "$user:$user SIGTERM [CMD /usr/lib/speedo/health.sh $1] $version" ] ||
    fail "$1 tells engines: $told"
}

# make_network: a bridge, and one namespace with an address for each name.
make_network() {
  local i name
  ip netns add "$id-hub"
  ip -n "$id-hub" link add bridge type bridge
  ip -n "$id-hub" link set bridge up
  for i in "${!names[@]}"; do
    name=$id-${names[i]}
    ip netns add "$name"
    ip -n "$id-hub" link add "port$i" type veth peer name eth0 netns "$name"
    ip -n "$id-hub" link set "port$i" master bridge up
    ip -n "$name" address add "${addresses[i]}/24" dev eth0
    ip -n "$name" link set eth0 up
    ip -n "$name" link set lo up
  done
}

# What an engine does with --read-only --cap-drop ALL --security-opt no-new-privileges, --tmpfs /tmp
# and its volumes. Arguments: root, folder with data, snapshots and hosts, secret or nothing, user,
# command.
# shellcheck disable=SC2016 # Another shell expands it.
readonly enter='
set -eu
root=$1 work=$2 secret=$3 user=$4
shift 4
mount --make-rprivate /
mount --bind "$root" "$root"
mount --bind "$work/data" "$root/data"
mount -o remount,bind,ro "$root/data"
mount --bind "$work/snapshots" "$root/snapshots"
mount --bind "$work/hosts" "$root/etc/hosts"
if [ -n "$secret" ]; then mount --bind "$secret" "$root/run/secrets/redis_password"; fi
mount -t tmpfs -o mode=1777,size=64m tmpfs "$root/tmp"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -o remount,bind,ro "$root"
cd "$root/data"
exec env --ignore-environment PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" \
  env --chdir=/data setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs \
  --bounding-set=-all --inh-caps=-all "$@"'

# enter_image NAME IMAGE SECRET WORD...: what an image starts, with those words, in that namespace.
enter_image() {
  local name=$1 image=$2 secret=$3 entry
  shift 3
  mapfile -t entry < <(buildah inspect --type image --format \
    '{{range .Docker.Config.Entrypoint}}{{println .}}{{end}}' "localhost/$image:$tag" | sed '/^$/d')
  exec ip netns exec "$id-$name" unshare --mount --pid --fork --kill-child \
    bash -c "$enter" enter "${root[$image]}" "$work" "$secret" "$user" \
    "${entry[@]}" "$@"
}

# start NAME IMAGE WORD...: in the background, with a log of its own.
start() {
  local name=$1 image=$2
  shift 2
  : >"$work/$name.log"
  enter_image "$name" "$image" "$work/redis.password" "$@" >"$work/$name.log" 2>&1 &
  starter[$name]=$!
}

# process NAME COMMAND: the id of a process of that container.
process() {
  local pid
  for pid in $(ip netns pids "$id-$1"); do
    if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$2" ]; then
      echo "$pid"
      return
    fi
  done
  fail "no $2 runs in $1"
}

# expect CODE TEXT NAME WORD...: how the image of that name ends with those words, and what it says;
# without a secret, unless `secret` names its file.
expect() {
  local code=$1 text=$2 name=$3 image=speedo-worker status=0
  shift 3
  if [ "$name" = master ]; then image=speedo-master; fi
  (enter_image "$name" "$image" "${secret:-}" "$@") >"$work/expect.log" 2>&1 || status=$?
  [ "$status" -eq "$code" ] || fail "'$*' ended with $status, not $code"
  grep -qF -- "$text" "$work/expect.log" || fail "'$*' did not say '$text'"
}

# iteration: of the master's last test.
iteration() { sed -nE 's/.*Iteration ([0-9]+), Testing net.*/\1/p' "$work/master.log" | tail -n 1; }

prepare_data() {
  examples/digits/get_data.sh
  mkdir -p "$work/data/examples" "$work/snapshots"
  cp -r examples/digits "$work/data/examples/"
  sed 's,^snapshot_prefix:.*,snapshot_prefix: "/snapshots/digits",' \
    examples/digits/digits_solver.prototxt >"$work/data/solver.prototxt"
  chown "$user:$user" "$work/snapshots"
  chmod 755 "$work"
  # The names that an engine's network would know, and each host its own.
  printf '%s\n' "127.0.0.1 localhost $(hostname)" "${addresses[0]} master" "${addresses[3]} redis" \
    >"$work/hosts"
  (umask 077 && printf '%s\n' "$password" >"$work/redis.password")
  chown "$user" "$work/redis.password"
}

check_bad_input() {
  expect 2 "Usage:" master master
  expect 2 "is no address of a master" master master 2 "${addresses[0]}"
  expect 2 "is this worker's own" worker1 worker "${addresses[1]}" "${addresses[0]}"
  expect 77 "no password is given" master master "${addresses[0]}" 2
  note "wrong words show the usage and end with 2; no password, no Redis"
  chown root "$work/snapshots"
  secret=$work/redis.password expect 73 "/snapshots" master master "${addresses[0]}" 2
  chown "$user:$user" "$work/snapshots"
  note "snapshots that cannot be written are told of at the start"
}

# check_containment NAME COMMAND...: whose the processes are, and what they may write.
check_containment() {
  local name=$1 command pid status
  shift
  for command; do
    pid=$(process "$name" "$command")
    status=$(cat "/proc/$pid/status")
    [ "$(awk '$1 == "Uid:" { print $2, $3, $4, $5 }' <<<"$status")" = "$user $user $user $user" ] ||
      fail "$command runs as another user than $user"
    grep -qE '^CapEff:\s0+$' <<<"$status" || fail "$command has capabilities"
  done
  # Root, whom no permission stops, is stopped by the mount alone.
  for place in / /usr/bin /data /snapshots /tmp; do
    if nsenter --target "$pid" --mount --root touch "$place/written" 2>"$work/touch.log"; then
      [[ $place == /snapshots || $place == /tmp ]] || fail "$place of $name can be written"
      nsenter --target "$pid" --mount --root rm "$place/written"
    else
      grep -q "Read-only file system" "$work/touch.log" || fail "$place: $(cat "$work/touch.log")"
      [[ $place != /snapshots && $place != /tmp ]] || fail "$place of $name cannot be written"
    fi
  done
  note "$name: $* run as user $user, without capabilities, on a read-only root"
}

# health NAME COMMAND: what the image's HEALTHCHECK says.
health() {
  nsenter --target "$(process "$1" "$2")" --all --root --setuid "$user" --setgid "$user" \
    /usr/lib/speedo/health.sh "$2" 2>/dev/null
}

check_redis_is_closed() {
  local reply
  # shellcheck disable=SC2016 # Another shell expands it.
  reply=$(ip netns exec "$id-worker1" bash -c \
    'exec 3<>/dev/tcp/10.77.0.1/6379; printf "PING\r\n" >&3; read -r reply <&3; echo "$reply"')
  [[ $reply == -NOAUTH* ]] || fail "Redis answers without its password: $reply"
  note "Redis refuses who has no password"
}

check_secret() {
  local name pid
  if grep -qF "$password" "$work"/*.log; then fail "the password stands in a log"; fi
  for name in "${names[@]}"; do
    for pid in $(ip netns pids "$id-$name"); do
      if grep -qaF "$password" "/proc/$pid/cmdline" "/proc/$pid/environ"; then
        fail "the password stands in the arguments or the environment of $(cat "/proc/$pid/comm")"
      fi
    done
  done
  note "the password is in no log, no command line and no environment"
}

kill_a_worker() {
  local before
  before=$(iteration)
  kill -KILL "$(process worker2 tini)"
  wait "${starter[worker2]}" 2>/dev/null || true
  until [ "$(iteration)" -ge $((before + 600)) ]; do
    kill -0 "${starter[master]}" 2>/dev/null || fail "the master ended with its worker"
    [ $SECONDS -lt 600 ] || fail "training stood still without its worker"
    sleep 0.1
  done
  note "worker2 was killed at iteration $before, training went on to $(iteration)"
}

# stop NAME...: all at once.
stop() {
  local name pid pids=() status began took
  # All are looked up before the first is told: a worker ends with its master.
  for name; do
    pid=$(process "$name" tini)
    pids+=("$pid")
  done
  began=$(date +%s%N)
  kill -TERM "${pids[@]}"
  for name; do
    status=0
    wait "${starter[$name]}" || status=$?
    [ "$status" -eq 0 ] || fail "$name ended with $status after SIGTERM"
  done
  took=$((($(date +%s%N) - began) / 1000000))
  [ "$took" -le $((stop_patience * 1000)) ] || fail "the stop took $took ms"
  for name; do
    [ -z "$(ip netns pids "$id-$name")" ] || fail "processes of $name are left"
  done
  note "SIGTERM stopped $* in $took ms, each with exit code 0"
}

# The accuracy of the snapshot that the stop left, by the master image's own tools.
test_snapshot() {
  local model
  model=$(cd "$work/snapshots" && find . -name '*.caffemodel' -user "$user" | sort -V | tail -n 1)
  [ -n "$model" ] || fail "there is no snapshot"
  expect 0 "accuracy = " master speedo test -model examples/digits/digits_train_test.prototxt \
    -weights "/snapshots/${model#./}" -iterations 3
  grep -qE "$accuracy" "$work/expect.log" || fail "the snapshot is worse than what was trained"
  note "the snapshot has $(grep -oE "accuracy = [0-9.]+" "$work/expect.log" | tail -n 1)"
}

# service NAME: the words that compose.yaml starts it with, one a line.
service() {
  "${compose[@]}" config | python3 -c '
import sys, yaml
print(*yaml.safe_load(sys.stdin)["services"][sys.argv[1]]["command"], sep="\n")' "$1"
}

try_two_commands() {
  check_bad_input
  start worker1 speedo-worker worker "${addresses[0]}" "${addresses[1]}"
  start worker2 speedo-worker worker "${addresses[0]}" "${addresses[2]}"
  wait_for 60 "$work/worker1.log" "attempt 2 to reach the master"
  if health worker1 speedo-worker; then fail "a worker without a master is healthy"; fi
  start master speedo-master master "${addresses[0]}" 2 --maxIter 1000000 --test 200
  wait_for 300 "$work/master.log" "$accuracy"
  note "two workers trained to $(grep -oE "accuracy = [0-9.]+" "$work/master.log" | tail -n 1)"
  health master speedo-master || fail "the master is not healthy"
  health worker1 speedo-worker || fail "a worker is not healthy"
  note "HEALTHCHECK tells a worker with a master from one without"
  check_containment master speedo-master redis-server
  check_containment worker1 speedo-worker
  check_redis_is_closed
  check_secret
  kill_a_worker
  stop master worker1
  check_secret
  test_snapshot
}

try_compose() {
  local words
  "${compose[@]}" -f docker/compose.gpu.yaml config --quiet
  mapfile -t words < <(service redis)
  start redis speedo-master "${words[@]}"
  mapfile -t words < <(service master)
  start master speedo-master "${words[@]}" --max-iter 1000000 --test-interval 200
  mapfile -t words < <(service worker)
  start worker1 speedo-worker "${words[@]}"
  start worker2 speedo-worker "${words[@]}"
  wait_for 300 "$work/master.log" "$accuracy"
  health redis redis-server || fail "redis is not healthy"
  check_containment redis redis-server
  check_secret
  note "compose.yaml's commands trained to $(grep -oE "accuracy = [0-9.]+" "$work/master.log" |
    tail -n 1)"
  stop master worker1 worker2
  stop redis
}

ENGINE=buildah TAG=$tag docker/build.sh >"$work/build.log" 2>&1 || fail "the images were not built"
tail -n 2 "$work/build.log"
for image in speedo-master speedo-worker; do
  check_config "$image"
  unpack "$image"
done
note "user, SIGTERM, HEALTHCHECK and version stand in the images"
make_network
prepare_data
try_two_commands
try_compose
