#!/usr/bin/env bash
# Builds the images speedo-master and speedo-worker and prints their sizes:
#   docker/build.sh [IMAGE...]
# BASE=NAME     the base image, Debian 12. Default: debian:12-slim of Docker's registry, or, where
#               that cannot be reached, one that docker/base.sh makes.
# ENGINE=NAME   docker, podman or buildah; default: the first that works here
# TAG=NAME      default: the project's version, and "latest"
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=docker/engine.sh
source docker/engine.sh

images=("$@")
if [ $# -eq 0 ]; then images=(speedo-worker speedo-master); fi
for image in "${images[@]}"; do
  case "$image" in
    speedo-master | speedo-worker) ;;
    *) echo "usage: docker/build.sh [speedo-master] [speedo-worker]" >&2; exit 2 ;;
  esac
done
version=$(sed -n 's/^project(SpeeDO VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
tags=("${TAG:-$version}")
if [ -z "${TAG:-}" ]; then tags+=(latest); fi
find_engine

# BuildKit keeps what the Dockerfile mounts as a cache. An image in OCI's format has no HEALTHCHECK.
build=(env DOCKER_BUILDKIT=1 docker build)
if [ "$engine" = podman ]; then build=(podman build --layers --format docker); fi
if [ "$engine" = buildah ]; then
  build=(buildah bud --layers --format docker --isolation "${BUILDAH_ISOLATION:-chroot}")
fi

# choose_base: sets `base`.
choose_base() {
  base=${BASE:-docker.io/library/debian:12-slim}
  if [ -n "${BASE:-}" ]; then return; fi
  if timeout 120 "$engine" pull --quiet "$base" >/dev/null 2>&1; then return; fi
  base=localhost/speedo-base:12
  if "$engine" inspect "$base" >/dev/null 2>&1; then return; fi
  echo "No registry can be reached: the base is made with debootstrap" >&2
  docker/base.sh "$base"
}

choose_base
for image in "${images[@]}"; do
  "${build[@]}" --file docker/Dockerfile --target "$image" --build-arg "BASE=$base" \
    --build-arg "VERSION=$version" --build-arg "REVISION=$revision" \
    "${tags[@]/#/--tag=$image:}" .
done
for image in "${images[@]}"; do
  if [ "$engine" = buildah ]; then
    size=$(buildah images --format '{{.Size}}' "$image:${tags[0]}" | sed -n 1p)
  else
    bytes=$("$engine" image inspect --format '{{.Size}}' "$image:${tags[0]}")
    size="$((bytes / 1000000)) MB"
  fi
  echo "$image:${tags[0]} $size"
done
