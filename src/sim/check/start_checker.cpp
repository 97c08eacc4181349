#include "sim/check/start_checker.hpp"

#include <memory>
#include <span>

#include <fmt/format.h>

#include <speedo/base/digest.hpp>
#include <speedo/store/parameter_store.hpp>

#include "base/parse_number.hpp"
#include "checkpoint/checkpoint_file.hpp"
#include "speedo.pb.h"
#include "store/record_codec.hpp"

namespace speedo::sim {
namespace {

using StartPlace = StartChecker::Place;

constexpr std::size_t kRecordHeadBytes = 16;  // of a .speedo file: magic and checksum

std::optional<StartPlace> place_of(const std::string& state) {
  record::Session session;
  if (!session.ParseFromString(state) || !session.has_term()) return std::nullopt;
  return StartPlace{
      {session.training_high(), session.training_low()}, session.term(), session.iteration(), 0};
}

void take_newer(const std::optional<StartPlace>& place, std::optional<StartPlace>& newest) {
  if (place && (!newest || newest->is_before(*place))) newest = place;
}

std::string show_place(const std::optional<StartPlace>& place) {
  if (!place) return "nothing";
  return fmt::format("iteration {} of term {}, training {}", place->iteration, place->term,
                     short_name(place->training));
}

}  // namespace

// As the record says that it was written, perhaps not renamed yet.
bool StartChecker::has_part(const record::CheckpointFile& record,
                            const record::CheckpointFile::Part& part) const {
  const auto folder = std::filesystem::path(setting_.prefix).parent_path();
  for (const std::string& name : {part.name(), part.name() + new_suffix(record)}) {
    const auto found = setting_.disk.files().find(folder / name);
    if (found == setting_.disk.files().end()) continue;
    const auto bytes = std::as_bytes(std::span(found->second.bytes));
    if (bytes.size() == part.bytes() && checksum_of(bytes) == part.checksum()) return true;
  }
  return false;
}

std::optional<StartChecker::Place> StartChecker::newest_file(
    const std::optional<TrainingId>& training) const {
  std::optional<Place> newest;
  for (const auto& [path, file] : setting_.disk.files()) {
    if (path.extension() != ".speedo" || !file.is_whole) continue;
    record::CheckpointFile record;
    if (!record.ParseFromString(file.bytes.substr(kRecordHeadBytes))) continue;
    const auto place = place_of(record.session());
    if (!place || (training && place->training != *training)) continue;
    const bool is_whole = has_part(record, record.model()) && has_part(record, record.state());
    if (is_whole) take_newer(place, newest);
  }
  return newest;
}

// "training ", 16 digits and 16 digits.
std::optional<TrainingId> StartChecker::noted() const {
  const auto found = setting_.disk.files().find(setting_.prefix + "." + setting_.job + ".training");
  if (found == setting_.disk.files().end()) return std::nullopt;
  const std::string& line = found->second.bytes;
  return TrainingId{std::stoull(line.substr(9, 16), nullptr, 16),
                    std::stoull(line.substr(25, 16), nullptr, 16)};
}

std::optional<StartChecker::Stored> StartChecker::stored(const std::string& name) const {
  const std::string key = RecordKeys(setting_.job, name).manifest();
  const KvPtr operation = get_whole(key);
  setting_.map.submit(operation);
  if (operation->error || !setting_.records.is_whole(key)) return std::nullopt;
  const auto manifest = decode_manifest(operation->text);
  const auto place = manifest ? place_of(manifest->info.state) : std::nullopt;
  if (!place) return std::nullopt;
  return Stored{*place, manifest->info.element_count > setting_.elements};
}

// Where any record has histories, one without them may be of no use.
std::optional<StartChecker::Place> StartChecker::newest_stored() const {
  const auto weights = stored(weights_key()), checkpoint = stored(checkpoint_key());
  const bool any_histories =
      (weights && weights->has_histories) || (checkpoint && checkpoint->has_histories);
  std::optional<Place> newest;
  for (const auto& each : {weights, checkpoint}) {
    if (each && (each->has_histories || !any_histories)) take_newer(each->place, newest);
  }
  return newest;
}

std::optional<StartChecker::Place> StartChecker::chose(
    const std::optional<TrainingId>& stored_training,
    const std::optional<SavedCheckpoint>& chosen) {
  const std::optional<TrainingId> training = stored_training ? stored_training : noted();
  std::optional<Place> place = chosen ? place_of(chosen->record.session()) : std::nullopt;
  if (place && setting_.wants_states) place->states = chosen->workers.count;
  const std::optional<Place> newest = newest_file(training);
  if (place && training && place->training != *training) {
    violations_.report(Check::kStart,
                       fmt::format("files of another training are chosen, {}; this one is {}",
                                   show_place(place), short_name(*training)));
  }
  const bool is_there = !written_ || (training && written_->training != *training) ||
                        (newest && !newest->is_before(*written_));
  if (!is_there) {
    violations_.report(Check::kStart,
                       fmt::format("files were written of {}, and the newest that are whole are {}",
                                   show_place(written_), show_place(newest)));
  }
  const bool is_newest =
      newest ? place && !place->is_before(*newest) && !newest->is_before(*place) : !place;
  if (!is_newest) {
    violations_.report(Check::kStart, fmt::format("of the files {} is chosen, the newest are {}",
                                                  show_place(place), show_place(newest)));
  }
  return place;
}

void StartChecker::wrote(const std::string& state) { written_ = place_of(state); }

void StartChecker::begins(const std::string& state, const std::optional<Place>& files) {
  std::optional<Place> newest = newest_stored();
  const bool is_its = files && (!newest || files->training == newest->training);
  if (is_its && files->states != 0) newest = files;
  if (is_its) take_newer(files, newest);
  if (!newest) return;
  const auto begun = place_of(state);
  if (begun && begun->training == newest->training && !begun->is_before(*newest)) return;
  violations_.report(Check::kStart, fmt::format("a master begins from {}, the newest is {}",
                                                show_place(begun), show_place(newest)));
}

}  // namespace speedo::sim
