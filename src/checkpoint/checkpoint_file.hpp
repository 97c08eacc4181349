#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <speedo/base/digest.hpp>
#include <speedo/base/result.hpp>
#include <speedo/train/training_id.hpp>

#include "caffe.pb.h"
#include "checkpoint/checkpoint_files.hpp"
#include "speedo.pb.h"

namespace speedo {

// A checkpoint in files is three of them: PREFIX_iter_N.caffemodel and .solverstate, as Caffe
// writes them, and PREFIX_iter_N.speedo, written last, the record that makes them one: it holds the
// state of the session and names the other two with their sizes and checksums. With them may go
// states of workers, PREFIX_iter_N.worker0 and so on (train/states/worker_state.hpp). The record:
//
//   8 bytes  "SPEEDO\1\n"
//   8 bytes  XXH3 of what follows, little-endian
//   the rest record.CheckpointFile (proto/speedo.proto)

// PREFIX_iter_N.speedo.
std::filesystem::path record_path(const std::string& prefix, std::uint64_t iteration);

// PREFIX_iter_N.workerK.
std::string state_path(const std::string& prefix, std::uint64_t iteration, int seat);

// Errors: kNotFound; kCorrupt, naming what is wrong.
Result<record::CheckpointFile> read_record(const std::filesystem::path& path,
                                           CheckpointFiles& files = disk_files());
// Whole or not at all. Error: kCannotWrite.
Result<void> write_record(const std::filesystem::path& path, const record::CheckpointFile& record,
                          CheckpointFiles& files = disk_files());

// The records of a prefix that are whole. Those of the training that was written last come first,
// and of one training those of its latest writer, the newest first: a master that has lost the job
// may have written after its successor. What is damaged goes to `damaged`.
struct FoundRecord {
  std::filesystem::path path;
  record::CheckpointFile record;
};
struct DamagedRecord {
  std::filesystem::path path;
  Error error;
};
std::vector<FoundRecord> find_records(const std::string& prefix,
                                      std::vector<DamagedRecord>* damaged = nullptr,
                                      CheckpointFiles& files = disk_files());

// What a checkpoint's files bear behind their names until its record is written. No other writer's
// do, so at any moment the record belongs to files that are there, and that one writer has written.
std::string new_suffix(const record::CheckpointFile& record);
// What it begins with in all checkpoints of a training.
std::string new_suffix_of(const TrainingId& training);
// That which the name of a file ends in; empty: none.
std::string new_suffix_in(const std::string& name);

// Size and checksum of `file`, which a record will name `name`. Errors: kNotFound, kData.
Result<record::CheckpointFile::Part> describe_part(const std::filesystem::path& file,
                                                   std::string name,
                                                   CheckpointFiles& files = disk_files());
// The file that is a part of this record in `folder`, if it is there as it was written, with its
// new_suffix() or without. Errors: kNotFound, kCorrupt.
Result<std::filesystem::path> find_part(const std::filesystem::path& folder,
                                        const record::CheckpointFile& record,
                                        const record::CheckpointFile::Part& part,
                                        CheckpointFiles& files = disk_files());

// All files that a record names.
std::vector<const record::CheckpointFile::Part*> parts_of(const record::CheckpointFile& record);

// Which of the workers' states that a checkpoint names must be readable: none, as they are not
// wanted; all but those that are damaged or gone; all.
enum class StatesNeeded { kNone, kWhatIsLeft, kAll };

// What a checkpoint must belong to.
struct CheckpointOwner {
  std::string job;
  Digest model;
  std::string solver_type = {};  // whose histories are gone on with; empty: they are not
  StatesNeeded states = StatesNeeded::kNone;
};
Digest model_of(const record::CheckpointFile& record);
TrainingId training_of(const record::CheckpointFile& record);
// Of the master whose session's state this is; 0: it is nobody's.
std::uint64_t term_of(const std::string& session);
// Of two writers of one training the later has the higher.
std::uint64_t rank_of(const record::CheckpointFile& record);
// Error: kMismatch.
Result<void> check_owner(const FoundRecord& found, const CheckpointOwner& owner);
// Whether a solver of this type goes on with the checkpoint's histories. Error: kMismatch.
Result<void> check_solver_type(const FoundRecord& found, const std::string& type);

bool is_finite(const caffe::NetParameter& model);
bool is_finite(const caffe::SolverState& state);

}  // namespace speedo
