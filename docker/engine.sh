# shellcheck shell=bash
# Which program builds images: source this file.

# find_engine: sets `engine` to docker or podman where one answers, else to buildah, which needs no
# engine; ENGINE names another.
find_engine() {
  engine=${ENGINE:-}
  case "$engine" in
    "") ;;
    docker | podman | buildah) return ;;
    *) echo "ENGINE=$engine: takes docker, podman or buildah" >&2; exit 2 ;;
  esac
  for engine in docker podman; do
    if command -v "$engine" >/dev/null && "$engine" info >/dev/null 2>&1; then return; fi
  done
  engine=buildah
  if ! command -v buildah >/dev/null; then
    echo "No engine answers, neither docker nor podman, and buildah, which needs none, is not" \
      "installed: apt-get install buildah" >&2
    exit 69
  fi
}
