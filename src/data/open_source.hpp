#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/data/data_source.hpp>

#include "data/image/encoded_image.hpp"

namespace speedo {

// What a prototxt says about the kind of its source.
enum class SourceKind { kLmdb, kLevelDb, kDatumfile };

// By the name that commands give a backend: lmdb, leveldb or datumfile; nothing for another.
std::optional<SourceKind> source_kind_named(const std::string& backend);

struct SourceOptions {
  std::optional<SourceKind> kind = {};     // empty: what the files look like
  ImageColor color = ImageColor::kNative;  // of encoded images
  std::filesystem::path base = {};         // second place to look for relative paths
};

// Opens a data set by name (src/data/README.md lists the forms). MNIST and CIFAR files are known by
// their content, whatever the kind says. Errors: kNotFound, kData, kUnsupported.
Result<std::unique_ptr<DataSource>> open_source(const std::string& name,
                                                const SourceOptions& options);

// The labels beside an idx file of images, which may be at a URI, as they then are. Errors: those
// of find_file().
Result<std::filesystem::path> find_idx_labels(const std::string& images);

}  // namespace speedo
