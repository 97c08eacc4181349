#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>

#include "data/convert.hpp"
#include "data/image/image_list.hpp"

namespace speedo {

struct ConvertImagesOptions {
  ConvertOptions output;  // not HDF5
  ImageListOptions images;
  bool check_size = false;  // all images must have as many values as the first
  bool encoded = false;     // store files instead of pixels: the image's own where it will do
  std::string encoding;     // of those that are made: "png" or "jpg"; empty: by each file's name
  std::optional<std::uint64_t> shuffle_seed = {};
  int threads = 1;  // that read and decode; the database does not depend on it
};

struct ConvertedImages {
  std::int64_t written = 0, skipped = 0;
};

// Makes a database of a list of images, as Caffe's convert_imageset does: keys are the place in the
// list, of eight digits, and the name. Errors: those of reading, unless bad records are skipped;
// kData for images of several sizes, with check_size; kCannotWrite.
Result<ConvertedImages> convert_images(ImageList list, const ConvertImagesOptions& options);

}  // namespace speedo
