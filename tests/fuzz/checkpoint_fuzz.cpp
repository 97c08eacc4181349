// The records of checkpoints in files, and the file that names a training.
#include "checkpoint/checkpoint_file.hpp"
#include "checkpoint/training_file.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/memory_file.hpp"

namespace speedo::fuzz {
namespace {

void read_checkpoint_record(const MemoryFile& file) {
  const auto record = read_record(file.path());
  if (!record) return;
  const FoundRecord found{file.path(), *record};
  const CheckpointOwner owner{.job = "job", .model = model_of(*record), .solver_type = "SGD"};
  static_cast<void>(check_owner(found, owner));
  static_cast<void>(find_part("/nonexistent", record->model()));
  training_of(*record);
}

SPEEDO_FUZZ_TARGET(checkpoint)(Bytes bytes) {
  const std::string text = text_of(bytes);
  const MemoryFile as_it_is(text), mended(with_checksum(text, 8));
  read_training_file(as_it_is.path());
  read_checkpoint_record(as_it_is);
  read_checkpoint_record(mended);
}

}  // namespace
}  // namespace speedo::fuzz
