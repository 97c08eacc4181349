#include "train/parts/neighbor_copies.hpp"

#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

#include "store/read_once.hpp"

namespace speedo {
namespace {

class TwinWriter : public RecordWriter {
 public:
  TwinWriter(std::unique_ptr<RecordWriter> first, std::unique_ptr<RecordWriter> second)
      : first_(std::move(first)), second_(std::move(second)) {}
  void write(std::size_t chunk, std::span<const float> values) override {
    first_->write(chunk, values);
    second_->write(chunk, values);
  }
  void set_state(std::string state) override { first_->set_state(std::move(state)); }
  bool is_sent() const override { return first_->is_sent() && second_->is_sent(); }
  Result<void> finish() override {
    SPEEDO_TRY(second_->finish());
    return first_->finish();
  }

 private:
  const std::unique_ptr<RecordWriter> first_, second_;
};

}  // namespace

std::unique_ptr<RecordWriter> write_both(std::unique_ptr<RecordWriter> first,
                                         std::unique_ptr<RecordWriter> second) {
  return std::make_unique<TwinWriter>(std::move(first), std::move(second));
}

NeighborCopies::NeighborCopies(std::shared_ptr<ParameterStore> store, PartClip clip)
    : store_(std::move(store)), clip_(clip) {
  SPEEDO_ASSERT(clip_.parts > 1);
}

std::string NeighborCopies::key(const std::string& name) const {
  const std::size_t neighbor = (clip_.part + 1) % clip_.parts;
  return part_key(neighbor, "of-" + std::to_string(clip_.part) + "/" + name);
}

std::string NeighborCopies::weights_key(std::uint64_t version) const {
  return key("weights-" + std::to_string(version % 2));
}

std::string NeighborCopies::checkpoint_key() const { return key("checkpoint"); }

std::unique_ptr<RecordWriter> NeighborCopies::write_weights(const RecordInfo& info) {
  return store_->write(weights_key(info.version), info);
}

Result<void> NeighborCopies::get_weights(const RecordReader& manifest, std::span<float> values) {
  const RecordInfo& wanted = manifest.info();
  const std::string name = weights_key(wanted.version);
  SPEEDO_ASSIGN(const auto copy, store_->read(name));
  bool is_it = copy->info().version == wanted.version &&
               copy->info().element_count == wanted.element_count;
  for (std::size_t chunk = 0; is_it && chunk < chunk_count(wanted.element_count); ++chunk) {
    is_it = copy->checksum(chunk) == manifest.checksum(chunk);
  }
  if (!is_it) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("the copy of part {} on the next server is not of version {}",
                             clip_.part + 1, wanted.version)};
  }
  SPEEDO_TRY(get_once(*store_, name, wanted.model, values));
  return {};
}

}  // namespace speedo
