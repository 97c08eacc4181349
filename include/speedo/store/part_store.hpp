#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>

namespace speedo {

// Where a part of a record lies: chunks C with C mod PartStore::parts() == `part`, all in one slot.
struct RecordPart {
  std::size_t part = 0;
  std::uint32_t slot = 0;
};

// What a manifest says of a part: its slot, and its chunks' checksums in their order.
struct WrittenPart {
  std::uint32_t slot = 0;
  std::vector<std::uint64_t> checksums;
  bool operator==(const WrittenPart&) const = default;
};

// Chunks of a record that lie on one server.
inline std::size_t chunks_of_part(std::uint64_t element_count, std::size_t part,
                                  std::size_t parts) {
  const std::size_t chunks = chunk_count(element_count);
  return chunks > part ? (chunks - part - 1) / parts + 1 : 0;
}

// Writes the chunks of one part. They count once a manifest names them. Dropped without finish() it
// leaves garbage that the next writer of that slot overwrites. Thread safety: one thread at a time.
class PartWriter {
 public:
  virtual ~PartWriter() = default;
  // As RecordWriter::write(), `chunk` numbered within the record. Requires: it is of this part.
  virtual void write(std::size_t chunk, std::span<const float> values) = 0;
  virtual bool is_sent() const = 0;
  // Waits until the server has them all. Errors: those of the store. Requires: every chunk of the
  // part was written.
  virtual Result<WrittenPart> finish() = 0;
};

// A record that lies wholly on the server of `part`; `name`: of the record keys' letters.
std::string part_key(std::size_t part, std::string_view name);
// On the server after that of `part`, of `parts`: a copy of what the part has of record `name`.
std::string part_copy_key(std::size_t part, std::size_t parts, std::string_view name);

// Records that several programs put together: each writes the chunks of one server, one of them
// makes the whole visible. Each writer of a part of the weights has a range of kRecordSlots slots
// that nobody else writes to, so that one that was replaced harms nothing. Errors, keys and thread
// safety as of the ParameterStore that this is part of. Values are written as they are, by no
// codec.
class PartStore {
 public:
  virtual ~PartStore() = default;
  // Servers, and so parts of a record.
  virtual std::size_t parts() const = 0;
  virtual std::unique_ptr<PartWriter> write_part(std::string_view key, const RecordInfo& info,
                                                 RecordPart where) = 0;
  // RecordStore::write() and erase() of a record that one writer after another has under one
  // master, each with slots [first_slot, first_slot + kRecordSlots) of its own and a later one with
  // higher ones. From a later one's finish() or erasure on, an earlier one's is kSuperseded, if the
  // store is fenced. Requires: `first_slot` is a multiple of kRecordSlots, and not 0.
  virtual std::unique_ptr<RecordWriter> write_in_turn(std::string_view key, const RecordInfo& info,
                                                      std::uint32_t first_slot) = 0;
  virtual Result<void> erase_in_turn(std::string_view key, std::uint64_t element_count,
                                     std::uint32_t first_slot) = 0;
  // Removes what such a writer's puts that were never finished have left of so many floats. What
  // the visible record has stays, and everything if that cannot be asked.
  virtual void erase_unfinished(std::string_view key, std::uint64_t element_count,
                                std::uint32_t first_slot) = 0;
  // Makes a record visible whose parts were written under this store's term: one of each server.
  // Fenced as a RecordWriter's finish(). Requires: each part has a checksum for each of its chunks.
  virtual Result<void> put_parts(std::string_view key, const RecordInfo& info,
                                 std::span<const WrittenPart> parts) = 0;
  // Whether what is visible is what put_parts() has made of these: a server may come back with an
  // older manifest, of the same version even, whose parts are elsewhere. Errors: the store's.
  virtual Result<bool> has_put_parts(std::string_view key, const RecordInfo& info,
                                     std::span<const WrittenPart> parts) = 0;
  // The visible record `key`, its chunks as they were put under part_copy_key(): in the parts' own
  // slots by write_part(), or, where one program has put the whole, in slot 0. Errors: as read().
  virtual Result<std::unique_ptr<RecordReader>> read_copies(std::string_view key) = 0;
  // False if the part's server came back without it, or with what was tried before in its place.
  // Errors: those of the store.
  virtual Result<bool> has_part(std::string_view key, const RecordInfo& info, std::size_t part,
                                const WrittenPart& written) = 0;
  // Removes what this term has written to slots [first, end) of a record of so many floats: of one
  // part, or of all. Requires: no manifest names it.
  struct Copies {
    std::uint32_t first_slot = 0, end_slot = 0;
    std::optional<std::size_t> part;
  };
  virtual void erase_copies(std::string_view key, std::uint64_t element_count, Copies copies) = 0;
};

}  // namespace speedo
