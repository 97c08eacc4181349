#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>

#include "train/merger_crew.hpp"

namespace speedo {

// One way through all chunks of several contributions: chunk k is merged while k+1 is read and k-1
// goes wherever `merged` sends it. Keeps its buffers between passes.
// Thread safety: one thread at a time.
class MergerPass {
 public:
  using Parts = std::span<const std::span<float>>;
  // Merges one chunk: `parts` holds it of each contribution, and may be overwritten. Called on the
  // crew's threads, for several chunks at once. Returns the first contribution at fault.
  using Merge = std::function<std::optional<std::size_t>(std::size_t chunk, Parts parts)>;
  // A chunk was merged; its parts are still there. Called in order, on the caller's thread.
  using Merged = std::function<void(std::size_t chunk, Parts parts)>;

  explicit MergerPass(int threads);

  // Requires: every reader has element_count floats and nothing requested; the readers are
  // destroyed before the next pass. Returns the contribution at fault (missing, corrupt, or by
  // `merge`), or none: all went well. Errors: transient ones.
  Result<std::optional<std::size_t>> run(std::uint64_t element_count,
                                         std::span<const std::unique_ptr<RecordReader>> readers,
                                         const Merge& merge, const Merged& merged);

 private:
  // A place for one chunk of each contribution.
  struct Slot {
    std::vector<std::span<float>> parts;
    std::optional<std::size_t> fault;
    std::atomic<bool> done{false};
  };
  class Run;
  void prepare(std::size_t contributions, std::uint64_t element_count);

  std::vector<float> memory_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::size_t slot_count_ = 0;  // of slots_, those in use
  MergerCrew helpers_;
  MergerCrew inline_;  // short records are merged where they arrive: waking a thread takes longer
};

}  // namespace speedo
