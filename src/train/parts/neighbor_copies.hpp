#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/store/parameter_store.hpp>

#include "train/parts/part_clip.hpp"

namespace speedo {

// Copies of a part on the server after its own, for the time when that server and the part's merger
// are gone together: the newest checkpoint, and the weights of the newest two versions, as the last
// that was written may not count. Another merger that only is thought to be gone may write copies
// as well, so weights are taken only if they are what the weights' own manifest names.
// Requires: two servers or more. Blocking. Thread safety: one thread at a time.
class NeighborCopies {
 public:
  NeighborCopies(std::shared_ptr<ParameterStore> store, PartClip clip);

  // `info`: of the part's elements.
  std::unique_ptr<RecordWriter> write_weights(const RecordInfo& info);
  // The version that `manifest`, a reader of the part, is of. Errors: those of the store;
  // kNotFound: it is not there.
  Result<void> get_weights(const RecordReader& manifest, std::span<float> values);

  std::string checkpoint_key() const;

 private:
  std::string weights_key(std::uint64_t version) const;
  std::string key(const std::string& name) const;

  const std::shared_ptr<ParameterStore> store_;
  const PartClip clip_;
};

// Writes a record and a second one alike; what `first` says of its end counts once `second` is
// there.
std::unique_ptr<RecordWriter> write_both(std::unique_ptr<RecordWriter> first,
                                         std::unique_ptr<RecordWriter> second);

}  // namespace speedo
