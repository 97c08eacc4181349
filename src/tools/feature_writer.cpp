#include "tools/feature_writer.hpp"

#include <span>
#include <utility>

#include <fmt/format.h>

#include "caffe.pb.h"
#include "data/dataset_writer.hpp"

namespace speedo {

namespace {

constexpr std::int64_t kAxesMax = 4;

Result<const Tensor*> feature_blob(const Net& net, const std::string& name) {
  const Tensor* blob = net.blob(name);
  if (blob == nullptr) {
    return Error{ErrorCode::kConfig, fmt::format("the net has no blob '{}': speedo net lists "
                                                 "those that it has",
                                                 name)};
  }
  const Shape& shape = blob->shape();
  if (shape.axes() > kAxesMax) {
    return Error{
        ErrorCode::kConfig,
        fmt::format("blob '{}' is {}: features have at most four axes, the first of images", name,
                    to_string(shape))};
  }
  return blob;
}

int size_of(const Shape& shape, int axis) {
  return static_cast<int>(axis < shape.axes() ? shape[axis] : 1);
}

}  // namespace

std::string feature_key(std::int64_t image) { return fmt::format("{:010}", image); }

FeatureWriter::FeatureWriter(std::string blob, std::unique_ptr<DatabaseWriter> database)
    : blob_(std::move(blob)), database_(std::move(database)) {}
FeatureWriter::FeatureWriter(FeatureWriter&&) noexcept = default;
FeatureWriter::~FeatureWriter() = default;

Result<FeatureWriter> FeatureWriter::create(const Net& net, const std::string& blob,
                                            const ConvertOptions& output) {
  SPEEDO_ASSIGN([[maybe_unused]] const Tensor* const found, feature_blob(net, blob));
  SPEEDO_ASSIGN(std::unique_ptr<DatabaseWriter> database, make_database_writer(output));
  return FeatureWriter(blob, std::move(database));
}

Result<FeatureWriter> FeatureWriter::create(const Net& net, const std::string& blob,
                                            std::unique_ptr<DatabaseWriter> database) {
  SPEEDO_ASSIGN([[maybe_unused]] const Tensor* const found, feature_blob(net, blob));
  return FeatureWriter(blob, std::move(database));
}

Result<void> FeatureWriter::add_batch(const Net& net) {
  SPEEDO_ASSIGN(const Tensor* const blob, feature_blob(net, blob_));
  const Shape& shape = blob->shape();
  const std::vector<float> values = blob->values(net.backend());
  // A single value, such as a loss, is that of one image for Caffe.
  const auto row = static_cast<std::size_t>(shape.axes() == 0 ? 1 : shape.count(1));
  caffe::Datum datum;
  datum.set_channels(size_of(shape, 1));
  datum.set_height(size_of(shape, 2));
  datum.set_width(size_of(shape, 3));
  for (std::int64_t image = 0; image < size_of(shape, 0); ++image) {
    const auto features = std::span(values).subspan(static_cast<std::size_t>(image) * row, row);
    datum.mutable_float_data()->Clear();
    datum.mutable_float_data()->Add(features.begin(), features.end());
    SPEEDO_TRY(database_->put(feature_key(count_++), datum.SerializeAsString()));
  }
  return {};
}

Result<void> FeatureWriter::commit() { return database_->commit(); }

}  // namespace speedo
