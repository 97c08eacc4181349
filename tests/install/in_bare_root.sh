#!/usr/bin/env bash
# Run by package.sh as root of a bare Debian, with the package at /speedo.deb.
set -euo pipefail

fail() { echo "$*" >&2; exit 1; }

# What dpkg and its helpers keep for themselves is no package's.
list_files() {
  find / -xdev \( -path /proc -o -path /dev -o -path /tmp -o -path /run -o -path /var/lib/dpkg \
    -o -path /var/cache -o -path /var/log -o -path /var/lib/apt \) -prune -o -print | sort
}

echo "== install"
apt-get -qq update
apt-get -qq -y --no-install-recommends satisfy "$(dpkg-deb -f /speedo.deb Depends)" >/dev/null
list_files >/tmp/before
dpkg -i /speedo.deb >/dev/null
for page in speedo speedo-run speedo-master; do man -w "$page"; done
for unit in speedo-master speedo-worker; do
  [ "$(systemctl is-enabled "$unit.service")" = disabled ] || fail "$unit is not disabled"
  output=$(systemd-analyze verify "/usr/lib/systemd/system/$unit.service" 2>&1) || fail "$output"
  [ -z "$output" ] || fail "systemd-analyze verify: $output"
  systemd-analyze security --offline=yes --threshold=20 "/usr/lib/systemd/system/$unit.service" |
    tail -n 1
done

echo "== the digits, by speedo run"
cp -r /usr/share/speedo /tmp/speedo
cd /tmp/speedo
examples/digits/get_data.sh
speedo run --solver examples/digits/digits_solver.prototxt --workers 2 --json \
  >/tmp/result 2>/tmp/log || { tail /tmp/log; exit 1; }
accuracy=$(tail -n 1 /tmp/result | sed -n 's/.*"accuracy": *\([0-9.]*\).*/\1/p')
echo "accuracy $accuracy"
awk "BEGIN { exit !(${accuracy:-0} >= 0.9) }" || fail "the accuracy is not 0.9"
cd /

echo "== settings stay on removal, nothing does on a purge"
echo "# mine" >>/etc/speedo/speedo.toml
echo secret >/etc/speedo/redis.password
mkdir -p /var/lib/private/speedo
ln -s private/speedo /var/lib/speedo
systemctl enable speedo-master.service 2>/dev/null
dpkg --remove speedo >/dev/null
grep -q mine /etc/speedo/speedo.toml
dpkg --purge speedo >/dev/null
list_files >/tmp/after
diff /tmp/before /tmp/after || fail "the purge left something"
echo "nothing is left"
