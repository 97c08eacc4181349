#!/usr/bin/env bash
# Makes a base image of Debian 12 from Debian's mirror alone, for where no registry can be reached:
#   docker/base.sh NAME     NAME: of the image, e.g. localhost/speedo-base
# MIRROR names another mirror. Needs root and debootstrap.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=docker/engine.sh
source docker/engine.sh

if [ $# -ne 1 ] || [ "${1#-}" != "$1" ]; then
  echo "usage: docker/base.sh NAME" >&2
  exit 2
fi
if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
  echo "docker/base.sh needs root, and debootstrap (apt-get install debootstrap)" >&2
  exit 69
fi
name=$1 mirror=${MIRROR:-http://deb.debian.org/debian}
find_engine

folder=$(mktemp -d)
container=
clean_up() {
  if [ -n "$container" ]; then buildah rm "$container" >/dev/null; fi
  rm -rf "$folder"
}
trap clean_up EXIT
root=$folder/root

debootstrap --variant=minbase bookworm "$root" "$mirror" >&2
# Neither what people read nor what apt can fetch again, as in the base images of registries.
mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
cat >"$root/etc/dpkg/dpkg.cfg.d/slim" <<END
path-exclude /usr/share/doc/*
path-exclude /usr/share/man/*
path-exclude /usr/share/info/*
path-exclude /usr/share/locale/*
path-include /usr/share/doc/*/copyright
END
find "$root/usr/share/doc" -type f ! -name copyright -delete
find "$root/usr/share/doc" -depth -type d -empty -delete
rm -rf "$root"/usr/share/{man,info,locale}/* "$root"/var/cache/apt/{archives/*,*.bin} \
  "$root"/var/lib/apt/lists/* "$root"/var/log/* "$root"/var/cache/debconf/*-old
cat >"$root/etc/apt/sources.list" <<END
deb $mirror bookworm main
deb $mirror bookworm-updates main
deb ${MIRROR_SECURITY:-http://deb.debian.org/debian-security} bookworm-security main
END

if [ "$engine" = buildah ]; then
  container=$(buildah from scratch)
  buildah copy --quiet "$container" "$root" / >/dev/null
  buildah config --cmd /bin/bash "$container"
  buildah commit --quiet "$container" "$name" >/dev/null
else
  tar -C "$root" -c . | "$engine" import --change 'CMD ["/bin/bash"]' - "$name" >/dev/null
fi
