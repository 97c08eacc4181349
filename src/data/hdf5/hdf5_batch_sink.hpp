#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include <speedo/core/batch_sink.hpp>

#include "data/hdf5/hdf5_file.hpp"
#include "data/path_claim.hpp"

namespace speedo {

// An HDF5 file with the datasets `data` and `label`, always of four axes as Caffe writes them, to
// which each batch adds its items. The file is there once it is finished; without an item there is
// none.
class Hdf5BatchSink : public BatchSink {
 public:
  // Errors: kConfig for shapes that do not fit, kCannotWrite.
  static Result<std::unique_ptr<BatchSink>> create(const std::filesystem::path& path,
                                                   PathClaim claim, std::span<const Shape> shapes);
  Result<void> write(std::span<const BatchPart> parts) override;
  Result<void> finish() override;

 private:
  using ItemDims = std::array<std::int64_t, 3>;

  Hdf5BatchSink(Hdf5Writer file, PathClaim claim, std::vector<ItemDims> items);
  static Result<ItemDims> item_dims(const Shape& shape);

  PathClaim claim_;
  Hdf5Writer file_;
  std::vector<ItemDims> items_;
  bool has_items_ = false;
};

}  // namespace speedo
