#include "core/blob_proto.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

namespace speedo {
namespace {

bool has_legacy_shape(const caffe::BlobProto& blob) {
  return blob.has_num() || blob.has_channels() || blob.has_height() || blob.has_width();
}

std::span<float> make_room(std::int64_t count, google::protobuf::RepeatedField<float>& values) {
  SPEEDO_ASSERT(count <= INT32_MAX);
  values.Resize(static_cast<int>(count), 0.0F);
  return {values.mutable_data(), static_cast<std::size_t>(count)};
}

int stored_count(const caffe::BlobProto& blob) {
  return blob.double_data_size() > 0 ? blob.double_data_size() : blob.data_size();
}

Result<void> check_count(const caffe::BlobProto& blob, std::int64_t count) {
  const int stored = stored_count(blob);
  if (stored == count) return {};
  return Error{ErrorCode::kData,
               fmt::format("stored array holds {} values where its shape needs {}", stored, count)};
}

void set_shape(const Shape& shape, caffe::BlobProto& blob) {
  blob.mutable_shape()->clear_dim();
  for (const std::int64_t dim : shape.dims()) {
    blob.mutable_shape()->add_dim(dim);
  }
}

}  // namespace

Result<Shape> shape_of(const caffe::BlobProto& blob) {
  std::vector<std::int64_t> dims(blob.shape().dim().begin(), blob.shape().dim().end());
  if (has_legacy_shape(blob)) {
    dims = {blob.num(), blob.channels(), blob.height(), blob.width()};
  }
  auto shape = Shape::create(std::move(dims));
  if (!shape) {
    return Error{ErrorCode::kData, fmt::format("stored array: {}", shape.error().message)};
  }
  return shape;
}

Result<Shape> filled_shape_of(const caffe::BlobProto& blob) {
  SPEEDO_ASSIGN(Shape shape, shape_of(blob));
  SPEEDO_TRY(check_count(blob, shape.count()));
  return shape;
}

bool fits(const caffe::BlobProto& blob, const Shape& shape) {
  const auto stored = shape_of(blob);
  if (!stored) {
    return false;
  }
  if (has_legacy_shape(blob)) {
    return shape.axes() <= stored->axes() && stored->matches_legacy(shape);
  }
  return *stored == shape;
}

Result<void> read_values(const caffe::BlobProto& blob, std::span<float> target) {
  SPEEDO_TRY(check_count(blob, static_cast<std::int64_t>(target.size())));
  if (blob.double_data_size() > 0) {
    std::transform(blob.double_data().begin(), blob.double_data().end(), target.begin(),
                   [](double value) { return static_cast<float>(value); });
  } else {
    std::copy(blob.data().begin(), blob.data().end(), target.begin());
  }
  return {};
}

std::span<float> set_shape_and_data(const Shape& shape, caffe::BlobProto& blob) {
  set_shape(shape, blob);
  return make_room(shape.count(), *blob.mutable_data());
}

std::span<float> set_diff(const Shape& shape, caffe::BlobProto& blob) {
  return make_room(shape.count(), *blob.mutable_diff());
}

}  // namespace speedo
