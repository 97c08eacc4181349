#pragma once

#include <algorithm>
#include <string_view>

namespace speedo {

// Whether Caffe's HDF5 files, where names are paths, keep a layer's parameters under this name:
// each part between slashes must be there, and none be ".", which is no place of its own.
inline bool is_kept_by_hdf5(std::string_view layer) {
  for (;;) {
    const std::size_t slash = std::min(layer.find('/'), layer.size());
    const std::string_view part = layer.substr(0, slash);
    if (part.empty() || part == ".") return false;
    if (slash == layer.size()) return true;
    layer.remove_prefix(slash + 1);
  }
}

}  // namespace speedo
