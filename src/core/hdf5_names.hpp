#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace speedo {

// Names of layers are paths in Caffe's HDF5 files: a group each, in which each parameter is a
// dataset that has its number as its name.
struct Hdf5Layer {
  std::string name;
  int parameters = 0;
};

class Hdf5Names {
 public:
  explicit Hdf5Names(const std::vector<Hdf5Layer>& layers) {
    for (const Hdf5Layer& layer : layers) {
      for (int i = 0; i < layer.parameters; ++i) {
        const bool is_new = datasets_.insert(layer.name + '/' + std::to_string(i)).second;
        if (!is_new && !first_bad_) first_bad_ = layer.name;
      }
    }
    for (const auto& [name, parameters] : layers) {
      if (parameters > 0 && !has_group(name) && !first_bad_) first_bad_ = name;
    }
  }
  // Whether a layer of this name can have a group: each part between slashes must be there, and
  // none be ".", which is no place of its own; nor can it be a dataset, or lie below one.
  bool has_group(std::string_view name) const {
    for (std::size_t begin = 0; begin <= name.size();) {
      const std::size_t end = std::min(name.find('/', begin), name.size());
      const std::string_view part = name.substr(begin, end - begin);
      if (part.empty() || part == "." || datasets_.contains(name.substr(0, end))) return false;
      begin = end + 1;
    }
    return true;
  }
  // A layer whose parameters cannot be kept beside those of the others, if there is one.
  const std::optional<std::string>& first_bad() const { return first_bad_; }

 private:
  std::set<std::string, std::less<>> datasets_;
  std::optional<std::string> first_bad_;
};

}  // namespace speedo
