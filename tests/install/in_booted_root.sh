#!/usr/bin/env bash
# Run by package.sh as a service of the bare Debian, which has been booted: the units at work. The
# package is installed, Redis runs, the digits lie in /srv/digits.
set -euo pipefail
trap 'journalctl --boot --no-pager --unit "speedo-*" | tail -n 60; power_off' EXIT
power_off() { systemctl --no-block poweroff 2>/dev/null || true; }

fail() { echo "$*"; exit 1; }
show() { systemctl show --property "$2" --value "speedo-$1.service"; }

# wait_for WHAT COMMAND...: until the command holds.
wait_for() {
  local what=$1 i
  shift
  for ((i = 0; i < 300; ++i)); do
    if "$@"; then return 0; fi
    sleep 0.2
  done
  fail "waited in vain for $what"
}
is() { [ "$(show "$1" "$2")" = "$3" ]; }
log_of_master() { journalctl --boot --no-pager --output cat --unit speedo-master; }

# newest: the iteration of the newest snapshot, or 0.
newest() {
  find /var/lib/speedo/ -name 'digits_iter_*.caffemodel' 2>/dev/null |
    sed 's/.*_iter_\([0-9]*\).*/\1/' | sort -n | tail -n 1 | grep . || echo 0
}
is_beyond() { [ "$(newest)" -gt "$1" ]; }

echo "== no password, no start"
if systemctl start speedo-master; then fail "the master started without a password"; fi
is master AssertResult no || fail "the missing password is not what kept the master from starting"

echo "== no token, no start"
(umask 077; head -c 24 /dev/urandom | base64 | tr '+/' '--' >/etc/speedo/redis.password)
if systemctl start speedo-master; then fail "the master started without a token"; fi
is master AssertResult no || fail "the missing token is not what kept the master from starting"

echo "== a missing solver is not tried again"
speedo token create /etc/speedo/job.token
printf 'requirepass %s\nsave ""\nmaxmemory-policy noeviction\n' "$(cat /etc/speedo/redis.password)" \
  >>/etc/redis/redis.conf
systemctl restart redis-server
sed -i 's|^#solver = .*|solver = "/srv/digits/missing.prototxt"|' /etc/speedo/speedo.toml
systemctl start speedo-master || true
wait_for "the end of the master" is master ActiveState failed
is master ExecMainStatus 64 || fail "it ended with $(show master ExecMainStatus), not 64"
is master NRestarts 0 || fail "it was started again"

echo "== a master that is killed is started again and goes on"
sed -i -e 's|missing.prototxt|digits_solver.prototxt|' -e 's|^#redis = .*|redis = "127.0.0.1"|' \
  -e 's|^#bind = .*|bind = "0.0.0.0"|' -e 's|^\[master\]|&\nsnapshot_interval = 100\nmax_iter = 10000000|' \
  -e 's|^#master = .*|master = "speedo://127.0.0.1:56126"|' /etc/speedo/speedo.toml
systemctl reset-failed speedo-master
systemctl start speedo-master speedo-worker
wait_for "the first snapshot" is_beyond 0
[ "$(show master UID)" -gt 999 ] || fail "the master runs as $(show master UID)"
grep -q '^CapEff:.0*$' "/proc/$(show master MainPID)/status" || fail "the master has capabilities"
before=$(newest)
systemctl kill --kill-whom=main --signal=KILL speedo-master
wait_for "another start" is master NRestarts 1
wait_for "another snapshot" is_beyond $((before + 200))
is worker NRestarts 0 || fail "the worker was started again"
log_of_master | grep -q 'goes on from iteration' || fail "the master began anew"

echo "== a stop writes a snapshot"
SECONDS=0
systemctl stop speedo-master
echo "the master stopped in $SECONDS s"
is master Result success || fail "the master's end: $(show master Result)"
model=$(log_of_master | sed -n 's/^accuracy .*, model in //p')
[ -f "/var/lib/speedo/$model" ] || fail "there is no model '$model'"
systemctl stop speedo-worker
is worker Result success || fail "the worker's end: $(show worker Result)"
accuracy=$(log_of_master | sed -n 's/.*Test net output #0: accuracy = //p' | tail -n 1)
echo "accuracy $accuracy"
awk "BEGIN { exit !(${accuracy:-0} >= 0.9) }" || fail "the accuracy is not 0.9"
if journalctl --boot --no-pager | grep -F -f /etc/speedo/redis.password; then fail "the password is logged"; fi
trap power_off EXIT
echo passed
