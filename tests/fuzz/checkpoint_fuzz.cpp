// The records of checkpoints in files, and the file that names a training.
#include <speedo/base/assert.hpp>
#include <speedo/base/file.hpp>

#include "checkpoint/checkpoint_file.hpp"
#include "checkpoint/training_file.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/memory_file.hpp"
#include "support/temp_dir.hpp"

namespace speedo::fuzz {
namespace {

// A folder with the record under its name, and a model beside it, which is the input too.
void read_checkpoint_folder(const std::string& text) {
  static const TempDir folder;
  const std::string prefix = folder / "f";
  const auto path = record_path(prefix, 7);
  const auto bytes = std::as_bytes(std::span(text));
  SPEEDO_ASSERT(write_file_atomically(path, bytes));
  SPEEDO_ASSERT(write_file_atomically(folder / "m", bytes));
  const auto part = describe_part(folder / "m", "m");
  SPEEDO_ASSERT(part && find_part(folder.path(), {}, *part));
  SPEEDO_ASSERT(!read_training_file(training_file(prefix, "job")));
  std::vector<DamagedRecord> damaged;
  for (const FoundRecord& found : find_records(prefix, &damaged)) {
    for (const auto* each : parts_of(found.record)) {
      static_cast<void>(find_part(folder.path(), found.record, *each));
    }
    // Of another net, of another job, and as it was written.
    CheckpointOwner owner{.job = found.record.job(), .model = {1, 2}, .solver_type = "Adam"};
    static_cast<void>(check_owner(found, owner));
    owner.model = model_of(found.record);
    static_cast<void>(check_owner(found, owner));
    SPEEDO_ASSERT(write_record(path, found.record) && read_record(path));
  }
}

void read_checkpoint_record(const MemoryFile& file) {
  const auto record = read_record(file.path());
  if (!record) return;
  const FoundRecord found{file.path(), *record};
  const CheckpointOwner owner{.job = "job", .model = model_of(*record), .solver_type = "SGD"};
  static_cast<void>(check_owner(found, owner));
  static_cast<void>(find_part("/nonexistent", *record, record->model()));
  training_of(*record);
}

SPEEDO_FUZZ_TARGET(checkpoint)(Bytes bytes) {
  const std::string text = text_of(bytes);
  const MemoryFile as_it_is(text), mended(with_checksum(text, 8));
  read_training_file(as_it_is.path());
  read_checkpoint_record(as_it_is);
  read_checkpoint_record(mended);
  read_checkpoint_folder(with_checksum(text, 8));
}

}  // namespace
}  // namespace speedo::fuzz
