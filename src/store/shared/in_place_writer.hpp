#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <speedo/store/record_store.hpp>

#include "store/shared/record_memory.hpp"

namespace speedo {

// Writes a version of a record into the memory that its readers share: chunks that were formed
// there are only shown. Values from elsewhere are copied, into a memory of one slot.
class InPlaceWriter : public RecordWriter {
 public:
  // `copy`: writes the same to where those read it who do not share the memory; null: nobody does.
  // Requires: the slot that is written was opened for info.version.
  InPlaceWriter(std::shared_ptr<RecordMemory> memory, RecordInfo info,
                std::unique_ptr<RecordWriter> copy);
  // Unfinished, it leaves nothing that counts.
  ~InPlaceWriter() override;
  void write(std::size_t chunk, std::span<const float> values) override;
  void watch(std::atomic<std::uint64_t>& progress) override {
    if (copy_) copy_->watch(progress);
  }
  void set_state(std::string state) override;
  // The copy counts first: what a newer master refuses is seen by nobody.
  Result<void> finish() override;

 private:
  const std::shared_ptr<RecordMemory> memory_;
  RecordInfo info_;
  const std::unique_ptr<RecordWriter> copy_;
  std::optional<std::size_t> slot_;  // of the chunks so far
  std::size_t left_;                 // chunks to be written
  bool finished_ = false;
};

}  // namespace speedo
