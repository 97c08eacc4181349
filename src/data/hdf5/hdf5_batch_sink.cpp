#include "data/hdf5/hdf5_batch_sink.hpp"

#include <utility>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>

namespace speedo {

namespace {

constexpr std::array kSinkDatasets{"data", "label"};

}  // namespace

Result<std::unique_ptr<BatchSink>> Hdf5BatchSink::create(const std::filesystem::path& path,
                                                         PathClaim claim,
                                                         std::span<const Shape> shapes) {
  SPEEDO_ASSERT(shapes.size() == kSinkDatasets.size());
  std::vector<ItemDims> items;
  for (const Shape& shape : shapes) {
    SPEEDO_ASSIGN(items.emplace_back(), item_dims(shape));
  }
  SPEEDO_ASSIGN(Hdf5Writer file, Hdf5Writer::create(path));
  return std::unique_ptr<BatchSink>(
      new Hdf5BatchSink(std::move(file), std::move(claim), std::move(items)));
}

Hdf5BatchSink::Hdf5BatchSink(Hdf5Writer file, PathClaim claim, std::vector<ItemDims> items)
    : claim_(std::move(claim)), file_(std::move(file)), items_(std::move(items)) {}

// Channels, height and width, 1 where there is no such axis.
Result<Hdf5BatchSink::ItemDims> Hdf5BatchSink::item_dims(const Shape& shape) {
  if (shape.axes() < 1 || shape.axes() > 4 || shape.count(1) == 0) {
    return Error{ErrorCode::kConfig, fmt::format("items of 1 to 4 axes that hold values can be "
                                                 "written, not those of a bottom of shape {}",
                                                 to_string(shape))};
  }
  ItemDims dims{1, 1, 1};
  for (int axis = 1; axis < shape.axes(); ++axis) {
    dims[static_cast<std::size_t>(axis - 1)] = shape[axis];
  }
  return dims;
}

Result<void> Hdf5BatchSink::write(std::span<const BatchPart> parts) {
  SPEEDO_ASSERT(parts.size() == kSinkDatasets.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    SPEEDO_ASSIGN(const ItemDims dims, item_dims(parts[i].shape));
    if (dims == items_[i]) continue;
    return Error{
        ErrorCode::kConfig,
        fmt::format("items of {}x{}x{} cannot follow those of {}x{}x{} in dataset '{}'", dims[0],
                    dims[1], dims[2], items_[i][0], items_[i][1], items_[i][2], kSinkDatasets[i])};
  }
  if (parts[0].shape[0] == 0) return {};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    SPEEDO_TRY(file_.add_rows(kSinkDatasets[i], items_[i], parts[i].values));
  }
  has_items_ = true;
  return {};
}

Result<void> Hdf5BatchSink::finish() { return has_items_ ? file_.commit() : Result<void>(); }

}  // namespace speedo
