#!/usr/bin/env bash
# The Debian packages: made, looked at by lintian, and in a bare Debian of its own installed, tried
# and purged. Needs root (or sudo) and a mirror of Debian.
#   tests/install/package.sh BUILD
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "$1")
source conf/packages/install.sh
install_packages tests/install/packages.txt

place=$(mktemp -d)
trap 'as_root rm -rf --one-file-system "$place"' EXIT
chmod 755 "$place"
root=$place/root

echo "== packages"
(cd "$build" && cpack -G DEB -B "$place/packages" >"$place/log") || { cat "$place/log"; exit 1; }
rm -rf "$place/packages/_CPack_Packages"
ls -l "$place/packages"
# The one tag that is passed over is for who uploads to Debian's own archive.
lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs \
  "$place"/packages/*.deb

echo "== a bare Debian"
as_root debootstrap --variant=minbase --include=ca-certificates,man-db,systemd \
  bookworm "$root" "${MIRROR:-http://deb.debian.org/debian}" >"$place/log" ||
  { tail "$place/log"; exit 1; }
as_root cp "$place"/packages/speedo_*.deb "$root/speedo.deb"
as_root cp "$place"/packages/libspeedo-dev_*.deb "$root/libspeedo-dev.deb"
as_root cp /etc/resolv.conf "$root/etc/resolv.conf"
as_root cp tests/install/in_bare_root.sh "$root/in_bare_root.sh"
# alone SCRIPT ARGUMENT...: in namespaces with which ends what it mounts and starts.
alone() { as_root unshare --mount --pid --fork --kill-child --mount-proc bash -euc "$1" - "${@:2}"; }

# in_root COMMAND...
in_root() {
  # shellcheck disable=SC2016 # The inner shell expands it.
  alone 'root=$1; shift
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root \
      DEBIAN_FRONTEND=noninteractive "$@"' "$root" "$@"
}
in_root bash /in_bare_root.sh

echo "== booted"
in_root dpkg -i /speedo.deb >/dev/null
as_root cp -r "$root/tmp/speedo/examples/digits" "$root/srv/digits"
as_root sed -i 's|examples/digits/||' "$root"/srv/digits/digits_{solver,train_test}.prototxt
as_root cp tests/install/in_booted_root.sh "$root/in_booted_root.sh"
as_root cp tests/install/try.service "$root/etc/systemd/system/try.service"
in_root systemctl --quiet enable try.service
# systemd keeps notes of containers in /run/systemd.
# shellcheck disable=SC2016 # The inner shell expands it.
alone 'mount -t tmpfs none /run/systemd
  exec timeout 300 systemd-nspawn --quiet --register=no --keep-unit --private-network \
    --console=pipe --boot --directory "$1" </dev/null' "$root" >"$place/log" 2>&1 ||
  { tail "$place/log"; exit 1; }
as_root cat "$root/outcome" | tee "$place/outcome"
grep -qx passed "$place/outcome"

echo "== a program on the libraries"
in_root bash -euc '
  apt-get install -y -qq --no-install-recommends /libspeedo-dev.deb cmake g++ make >/dev/null 2>&1
  cd /usr/share/speedo/examples
  cmake -S library -B /tmp/library >/dev/null
  cmake --build /tmp/library >/dev/null
  /tmp/library/forward mnist/lenet.prototxt'
