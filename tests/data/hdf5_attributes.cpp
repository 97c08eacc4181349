#include "data/hdf5_attributes.hpp"

#include <cstring>

#include <fmt/format.h>
#include <hdf5.h>

#include "data/hdf5/hdf5_handle.hpp"

namespace speedo {
namespace {

Error no_attribute(const Hdf5Reader& file, const std::string& name, const char* kind) {
  return {ErrorCode::kData,
          fmt::format("HDF5 file '{}' has no attribute '{}' that is {}", file.file_name(), name,
                      kind)};
}

// Of a file that is open already, an attribute of its root. Requires: Hdf5Lock is held.
struct RootAttribute {
  RootAttribute(const Hdf5Reader& reader, const std::string& name)
      : file(H5Fopen(reader.file_name().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose),
        attribute(H5Aopen_by_name(file.get(), "/", name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                  H5Aclose),
        type(H5Aget_type(attribute.get()), H5Tclose),
        space(H5Aget_space(attribute.get()), H5Sclose) {}
  bool is_one_value() const {
    return attribute && H5Sget_simple_extent_npoints(space.get()) == 1;
  }

  Hdf5Handle file, attribute, type, space;
};

}  // namespace

bool has_attribute(const Hdf5Reader& file, const std::string& name) {
  const Hdf5Lock lock;
  return static_cast<bool>(RootAttribute(file, name).attribute);
}

Result<double> number_attribute(const Hdf5Reader& file, const std::string& name) {
  const Hdf5Lock lock;
  const RootAttribute root(file, name);
  double value = 0.0;
  if (!root.is_one_value() || H5Aread(root.attribute.get(), H5T_NATIVE_DOUBLE, &value) < 0) {
    return no_attribute(file, name, "a number");
  }
  return value;
}

Result<std::string> string_attribute(const Hdf5Reader& file, const std::string& name) {
  const Hdf5Lock lock;
  const RootAttribute root(file, name);
  if (!root.is_one_value() || H5Tget_class(root.type.get()) != H5T_STRING) {
    return no_attribute(file, name, "a string");
  }
  if (H5Tis_variable_str(root.type.get()) > 0) {
    char* value = nullptr;
    if (H5Aread(root.attribute.get(), root.type.get(), &value) < 0 || value == nullptr) {
      return no_attribute(file, name, "a string");
    }
    const std::string text = value;
    H5free_memory(value);
    return text;
  }
  std::string text(H5Tget_size(root.type.get()), '\0');
  if (H5Aread(root.attribute.get(), root.type.get(), text.data()) < 0) {
    return no_attribute(file, name, "a string");
  }
  text.resize(std::strlen(text.c_str()));
  return text;
}

}  // namespace speedo
