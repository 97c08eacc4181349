#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/data/data_source.hpp>

#include "data/image/transformer.hpp"

namespace caffe {
class BlobProto;
}

namespace speedo {

struct MeanImage {
  ImageDims dims;
  std::vector<float> values;
};

// A mean.binaryproto: a BlobProto of one image. Errors: kNotFound; kData if it is something else.
Result<MeanImage> read_mean(const std::filesystem::path& path);

// The mean of all records, as Caffe's compute_image_mean writes it: dims 1, C, H, W in the old
// fields. `progress` (may be empty) is told how many records are done. Error: kData, also when the
// records differ in shape.
Result<caffe::BlobProto> compute_mean(DataSource& source,
                                      const std::function<void(std::int64_t done)>& progress = {});

}  // namespace speedo
