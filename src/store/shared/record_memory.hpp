#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <speedo/base/digest.hpp>
#include <speedo/base/result.hpp>
#include <speedo/base/shared_memory.hpp>
#include <speedo/store/record_store.hpp>

namespace speedo {

// One record in memory that its readers have as well. Its values lie in `values`, in one or several
// slots; one process writes them, in place. What lies where is said by the board, a second memory:
//
//   BoardHead                  what the record is; final
//   SlotHead, for each slot    generation: drawn anew whenever the slot begins to be written
//   mark, for each slot and    the generation that the chunk is final of
//     chunk
//
// A reader takes a chunk whose mark is its slot's generation, and counts what it has read if the
// generation is still the same afterwards: whoever writes a slot anew changes it first. So readers
// never wait, nor are waited for, and a writer that dies leaves what it has finished whole. All of
// it is in 64-bit words that are written at once.
struct BoardHead {
  std::uint64_t magic = 0;
  std::uint64_t slots = 0;
  std::uint64_t element_count = 0;
  std::uint64_t model_high = 0, model_low = 0;
  std::uint64_t newest = 0;  // slot + 1 of the newest finished version; 0: none
};
struct SlotHead {
  std::uint64_t generation = 0;  // 0: nothing was ever begun
  std::uint64_t version = 0;     // being written, or finished
  std::uint64_t finished = 0;    // the generation, once all of it is there and counts
  std::uint64_t base_version = 0, worker = 0, term = 0;
};

// What a record is made for.
struct RecordShape {
  std::size_t slots = 1;
  std::uint64_t element_count = 0;
  Digest model;
};

// The writer's side. Thread safety: one thread at a time; slot() at any time.
class RecordMemory {
 public:
  // The values are those of `values`, slot after slot from its first byte, each slot_elements()
  // long. Requires: they fit. Error: kFull.
  static Result<std::shared_ptr<RecordMemory>> create(const RecordShape& shape,
                                                      std::shared_ptr<SharedMemory> values);
  // With values of its own. Errors: kFull, kUnsupported.
  static Result<std::shared_ptr<RecordMemory>> create(const RecordShape& shape);
  // What is finished stays so for its readers.
  ~RecordMemory() = default;
  RecordMemory(const RecordMemory&) = delete;
  RecordMemory& operator=(const RecordMemory&) = delete;

  // From one slot's first element to the next one's: whole cache lines.
  static std::size_t slot_elements(const RecordShape& shape);

  const RecordShape& shape() const { return shape_; }
  const std::shared_ptr<const SharedMemory>& board() const { return board_view_; }
  const std::shared_ptr<const SharedMemory>& values() const { return values_view_; }
  std::span<float> slot(std::size_t slot) const;
  // The slot that `values` lies in.
  std::optional<std::size_t> slot_of(const float* values) const;

  // Before anything is written into the slot: what lay there is void, a version of this number
  // begins.
  void open(std::size_t slot, std::uint64_t version);
  // The chunk of what was begun there is final.
  void show(std::size_t slot, std::size_t chunk);
  // Nothing in it counts any more: the values are about to be overwritten, or not to be read.
  void withdraw();
  // All chunks are, and it is the newest version. Of `info`, what is not the shape's counts.
  void finish(std::size_t slot, const RecordInfo& info);

 private:
  RecordMemory(const RecordShape& shape, std::shared_ptr<SharedMemory> board,
               std::shared_ptr<SharedMemory> values);

  const RecordShape shape_;
  const std::shared_ptr<SharedMemory> board_, values_;
  const std::shared_ptr<const SharedMemory> board_view_, values_view_;
  std::uint64_t generation_ = 0;  // the last one drawn
};

// A reader's side, of a memory that some process has offered. Thread safety: all methods from any
// thread.
class SharedRecord {
 public:
  // Error: kMismatch if that is no board, or not one of these values.
  static Result<std::shared_ptr<const SharedRecord>> make(
      std::shared_ptr<const SharedMemory> board, std::shared_ptr<const SharedMemory> values);

  const RecordShape& shape() const { return shape_; }

  // A version in a slot, as long as its generation lasts.
  struct Version {
    std::size_t slot = 0;
    std::uint64_t generation = 0;
    RecordInfo info;
  };
  std::optional<Version> newest() const;  // of those that are finished
  // One of this number that was begun, finished or not.
  // Of its info, the number and what is the shape's count.
  std::optional<Version> begun(std::uint64_t number) const;
  // Whether the chunk is final.
  bool has(const Version& version, std::size_t chunk) const;
  // Its values. What was read of them counts if is_still() says so afterwards.
  std::span<const float> chunk(const Version& version, std::size_t chunk) const;
  bool is_still(const Version& version) const;

 private:
  SharedRecord(const RecordShape& shape, std::shared_ptr<const SharedMemory> board,
               std::shared_ptr<const SharedMemory> values)
      : shape_(shape), board_(std::move(board)), values_(std::move(values)) {}
  Version version_in(std::size_t slot, std::uint64_t generation) const;

  const RecordShape shape_;
  const std::shared_ptr<const SharedMemory> board_, values_;
};

}  // namespace speedo
