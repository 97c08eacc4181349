#include "data/image/mean.hpp"

#include <fmt/format.h>

#include "caffe.pb.h"
#include "core/blob_proto.hpp"
#include "core/weight_file.hpp"
#include "data/record_group.hpp"

namespace speedo {

namespace {

// The last three axes; all before them must be 1.
Result<ImageDims> image_dims(const Shape& shape, const std::filesystem::path& path) {
  const int extra = shape.axes() - 3;
  if (extra < 0 || shape.count(0, extra) != 1 || shape.count() == 0) {
    return Error{ErrorCode::kData,
                 fmt::format("mean file '{}' does not hold one image: its shape is "
                             "{}",
                             path.string(), to_string(shape))};
  }
  return ImageDims{shape[extra], shape[extra + 1], shape[extra + 2]};
}

template <class Values>
void add(const Values& values, std::vector<double>& sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
}

}  // namespace

Result<MeanImage> read_mean(const std::filesystem::path& path) {
  SPEEDO_ASSIGN(const caffe::BlobProto blob, read_blob_file(path));
  const Result<Shape> shape = filled_shape_of(blob);
  if (!shape) {
    return Error{ErrorCode::kData,
                 fmt::format("mean file '{}': {}", path.string(), shape.error().message)};
  }
  MeanImage mean;
  SPEEDO_ASSIGN(mean.dims, image_dims(*shape, path));
  mean.values.resize(static_cast<std::size_t>(shape->count()));
  SPEEDO_TRY(read_values(blob, mean.values));
  return mean;
}

Result<caffe::BlobProto> compute_mean(DataSource& source,
                                      const std::function<void(std::int64_t)>& progress) {
  GroupedRecords records(source);
  ImageDims dims;
  std::vector<double> sums;
  for (std::int64_t index = 0; index < source.size(); ++index) {
    RecordRead& read = records.next();
    SPEEDO_TRY(std::move(read.outcome));
    const Record& record = *read.record;
    if (index == 0) {
      dims = {record.channels, record.height, record.width};
      sums.assign(static_cast<std::size_t>(record.count()), 0.0);
    }
    if (dims != ImageDims{record.channels, record.height, record.width}) {
      return Error{
          ErrorCode::kData,
          fmt::format("record {} is {}x{}x{}, but record 0 is {}x{}x{}: a mean needs images "
                      "of one size",
                      index, record.channels, record.height, record.width, dims.channels,
                      dims.height, dims.width)};
    }
    if (!record.bytes.empty()) {
      add(record.bytes, sums);
    } else {
      add(record.floats, sums);
    }
    if (progress) progress(index + 1);
  }
  caffe::BlobProto mean;
  mean.set_num(1);
  mean.set_channels(static_cast<int>(dims.channels));
  mean.set_height(static_cast<int>(dims.height));
  mean.set_width(static_cast<int>(dims.width));
  // The quotient is taken in float, as Caffe does, so that the files agree bit for bit.
  for (const double sum : sums) {
    mean.add_data(static_cast<float>(sum) / static_cast<float>(source.size()));
  }
  return mean;
}

}  // namespace speedo
