#include "train/trainer/trainer_exchange.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "base/log.hpp"
#include "store/chunk_range.hpp"

namespace speedo {
namespace {

// Weights that the master announced are there, unless the store lost them, or they were overwritten
// while they were read: then newer ones come within seconds.
constexpr std::chrono::milliseconds kWeightsPoll{20};

template <class Holds>
bool all_chunks(std::size_t offset, std::size_t count, const Holds& holds) {
  if (count == 0) return true;
  const auto [first, end] = chunks_of(offset, count);
  for (std::size_t chunk = first; chunk < end; ++chunk) {
    if (!holds(chunk)) return false;
  }
  return true;
}

Error cancelled_error() { return Error{ErrorCode::kUnavailable, "run cancelled"}; }

}  // namespace

// A record older than `version`, or of an earlier master than this worker's, is kNotFound, whatever
// it holds: what a store has lost the newer ones of may be of an earlier stage or job.
Result<std::unique_ptr<RecordReader>> RecordExchange::open_any(std::string_view key,
                                                               std::uint64_t version) {
  SPEEDO_ASSIGN(std::unique_ptr<RecordReader> reader, options_.store->read(key));
  const RecordInfo& info = reader->info();
  if (info.model != options_.model) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("record '{}' is of model {}, expected {}", key, to_string(info.model),
                             to_string(options_.model))};
  }
  if (info.term < options_.term) {
    return Error{ErrorCode::kNotFound, fmt::format("record '{}' is an earlier master's", key)};
  }
  if (info.version < version) {
    return Error{ErrorCode::kNotFound, fmt::format("record '{}' is of version {}, before {}", key,
                                                   info.version, version)};
  }
  reader->watch(progress_);
  return reader;
}

Result<std::unique_ptr<RecordReader>> RecordExchange::open(std::string_view key, std::size_t count,
                                                           std::uint64_t version) {
  SPEEDO_ASSIGN(std::unique_ptr<RecordReader> reader, open_any(key, version));
  const RecordInfo& info = reader->info();
  if (info.element_count != count) {
    // Another stage's weights come before word of the master that began it.
    if (info.term > options_.term) {
      return Error{ErrorCode::kUnavailable, fmt::format("record '{}' is a later master's", key)};
    }
    return Error{ErrorCode::kMismatch, fmt::format("record '{}' has {} floats, expected {}", key,
                                                   info.element_count, count)};
  }
  traffic_.pulled_bytes += count * sizeof(float);
  return reader;
}

Result<void> RecordExchange::take_all(IncomingChunks& incoming) {
  incoming.request_all();
  for (std::size_t chunk = 0; chunk < incoming.chunks(); ++chunk) {
    if (is_cancelled()) return cancelled_error();
    SPEEDO_TRY(incoming.take(chunk));
    progress_.fetch_add(1, std::memory_order_relaxed);
  }
  return {};
}

Result<RecordInfo> RecordExchange::read(std::string_view key, std::span<float> target,
                                        std::uint64_t version) {
  SPEEDO_ASSIGN(std::unique_ptr<RecordReader> reader, open(key, target.size(), version));
  IncomingChunks incoming(std::move(reader), target, {});
  SPEEDO_TRY(take_all(incoming));
  return incoming.info();
}

// `attempt` reads the newest weights; kNotFound: they are gone, or too old; kCorrupt: others wrote
// there. The master, which looks for that, writes them again.
Result<RecordInfo> RecordExchange::wait_for_weights(
    std::uint64_t version, const std::function<Result<RecordInfo>()>& attempt,
    Instant patience) const {
  const Clock& clock = options_.platform.clock();
  const Instant deadline = clock.now() + patience;
  while (true) {
    if (is_cancelled()) return cancelled_error();
    auto info = attempt();
    const bool is_damaged = !info && info.error().code == ErrorCode::kCorrupt;
    if (info || (info.error().code != ErrorCode::kNotFound && !is_damaged)) return info;
    if (clock.now() > deadline) {
      if (is_damaged) return info;
      return Error{ErrorCode::kUnavailable,
                   fmt::format("store: weights version {} did not appear; was the store emptied?",
                               version)};
    }
    options_.platform.sleep(kWeightsPoll);
  }
}

Result<RecordInfo> RecordExchange::read_weights(std::uint64_t version, std::span<float> target,
                                                Instant patience) {
  return wait_for_weights(
      version, [&] { return read(weights_key(), target, version); }, patience);
}

Result<RecordInfo> RecordExchange::begin_weights(std::uint64_t version, std::span<float> target,
                                                 Arrived arrived) {
  SPEEDO_ASSIGN(auto reader, open_weights(version, target.size()));
  return begin_weights(std::move(reader), target, std::move(arrived));
}

Result<std::unique_ptr<RecordReader>> RecordExchange::open_weights(std::uint64_t version,
                                                                   std::size_t count) {
  incoming_.reset();
  std::unique_ptr<RecordReader> reader;
  SPEEDO_TRY(wait_for_weights(version, [&]() -> Result<RecordInfo> {
    SPEEDO_ASSIGN(reader, open(weights_key(), count, version));
    return reader->info();
  }));
  return reader;
}

RecordInfo RecordExchange::begin_weights(std::unique_ptr<RecordReader> reader,
                                         std::span<float> target, Arrived arrived) {
  const RecordInfo info = reader->info();
  auto coming = take_coming(weights_key(), info, target);
  incoming_ = std::make_unique<IncomingChunks>(std::move(reader), target, std::move(arrived),
                                               std::move(coming));
  incoming_->request_all();
  return info;
}

Result<RecordInfo> RecordExchange::begin_record(std::string_view key, std::uint64_t version,
                                                const Room& room) {
  incoming_.reset();
  SPEEDO_ASSIGN(std::unique_ptr<RecordReader> reader, open_any(key, version));
  const RecordInfo info = reader->info();
  if (info.version != version) {
    return Error{ErrorCode::kNotFound, fmt::format("record '{}' is of version {}, not of {}", key,
                                                   info.version, version)};
  }
  SPEEDO_ASSIGN(const RecordRoom given, room(info));
  SPEEDO_ASSERT(given.target.size() == info.element_count);
  incoming_ = std::make_unique<IncomingChunks>(std::move(reader), given.target, Arrived(),
                                               take_coming(key, info, given.target));
  for (const std::size_t chunk : given.chunks) {
    traffic_.pulled_bytes += chunk_elements(info.element_count, chunk) * sizeof(float);
    incoming_->request(chunk);
  }
  return info;
}

bool RecordExchange::were_here(std::size_t offset, std::size_t count) const {
  SPEEDO_ASSERT(incoming_ != nullptr && offset + count <= incoming_->count());
  return all_chunks(offset, count,
                    [this](std::size_t chunk) { return incoming_->was_here(chunk); });
}

void RecordExchange::expect(std::string_view key, const AheadRecord& record,
                            std::span<float> target, bool follows_chunks) {
  coming_.reset();
  auto coming = make_coming(key, record, target);
  if (!follows_chunks) coming->allow_all();
  coming_.emplace(Coming{std::string(key), follows_chunks, std::move(coming)});
}

void RecordExchange::expect(std::string_view key, const AheadRecord& record,
                            const RecordRoom& room) {
  coming_.reset();
  auto coming = make_coming(key, record, room.target);
  for (const std::size_t chunk : room.chunks) coming->allow(chunk);
  coming_.emplace(Coming{std::string(key), false, std::move(coming)});
}

std::unique_ptr<ComingRecord> RecordExchange::make_coming(std::string_view key,
                                                          const AheadRecord& record,
                                                          std::span<float> target) const {
  return std::make_unique<ComingRecord>(options_.store->read_ahead(key, record), record, target,
                                        options_.platform.clock().now());
}

std::optional<Instant> RecordExchange::advance() {
  if (!coming_) return std::nullopt;
  const std::size_t before = coming_->record->come();
  const Instant pause = coming_->record->advance(options_.platform.clock().now());
  progress_.fetch_add(coming_->record->come() - before, std::memory_order_relaxed);
  return pause;
}

bool RecordExchange::has_come(std::size_t offset, std::size_t count) const {
  return coming_ && all_chunks(offset, count, [this](std::size_t chunk) {
           return coming_->record->is_here(chunk);
         });
}

// What was expected, if it is this; else nothing is any more.
std::unique_ptr<ComingRecord> RecordExchange::take_coming(std::string_view key,
                                                          const RecordInfo& info,
                                                          std::span<const float> target) {
  std::optional<Coming> coming = std::exchange(coming_, std::nullopt);
  const bool fits = coming && coming->key == key &&
                    coming->record->record().version == info.version &&
                    coming->record->record().term == info.term &&
                    coming->record->target().data() == target.data() &&
                    coming->record->target().size() == target.size();
  return fits ? std::move(coming->record) : nullptr;
}

Result<void> RecordExchange::need_weights(std::size_t offset, std::size_t count) {
  SPEEDO_ASSERT(incoming_ != nullptr && offset + count <= incoming_->count());
  if (count == 0) return {};
  const auto [first, end] = chunks_of(offset, count);
  for (std::size_t chunk = first; chunk < end; ++chunk) {
    if (incoming_->is_here(chunk)) continue;
    if (is_cancelled()) return cancelled_error();
    const Instant start = options_.platform.clock().now();
    SPEEDO_TRY(incoming_->take(chunk));
    waited_ += options_.platform.clock().now() - start;
    progress_.fetch_add(1, std::memory_order_relaxed);
  }
  return {};
}

std::unique_ptr<RecordWriter> RecordExchange::make_writer(std::uint64_t run,
                                                          std::uint64_t base_version,
                                                          std::size_t count) const {
  RecordInfo info;
  info.model = options_.model;
  info.version = run;
  info.base_version = base_version;
  info.worker = options_.worker.value;
  info.element_count = count;
  info.codec = options_.codec.kind();
  auto writer = options_.store->write(options_.contribution, info);
  writer->watch(progress_);
  return writer;
}

void RecordExchange::begin_contribution(std::uint64_t run, std::uint64_t base_version,
                                        std::size_t count, Form form) {
  SPEEDO_ASSERT(outgoing_ == nullptr);
  outgoing_ = std::make_unique<Outgoing>(Outgoing{.run = run,
                                                  .base_version = base_version,
                                                  .form = std::move(form),
                                                  .tally = ChunkTally(count),
                                                  .target = std::nullopt,
                                                  .version = 0,
                                                  .error = std::nullopt,
                                                  .writer = make_writer(run, base_version, count)});
}

void RecordExchange::begin_on_weights(std::uint64_t run, std::uint64_t version,
                                      std::span<float> target, Form form) {
  SPEEDO_ASSERT(outgoing_ == nullptr);
  outgoing_ = std::make_unique<Outgoing>(Outgoing{.run = run,
                                                  .base_version = 0,
                                                  .form = std::move(form),
                                                  .tally = ChunkTally(target.size()),
                                                  .target = target,
                                                  .version = version,
                                                  .error = std::nullopt,
                                                  .writer = nullptr});
  incoming_.reset();
  // If they cannot be read now, commit() waits for them.
  if (!open_weights_to_form_on()) {
    outgoing_->writer.reset();
    incoming_.reset();
  }
}

// The newest, and a writer for what is formed on them; nothing is requested yet.
Result<void> RecordExchange::open_weights_to_form_on() {
  const std::span<float> target = *outgoing_->target;
  SPEEDO_ASSIGN(std::unique_ptr<RecordReader> reader,
                open(weights_key(), target.size(), outgoing_->version));
  outgoing_->base_version = reader->info().version;
  outgoing_->writer = make_writer(outgoing_->run, outgoing_->base_version, target.size());
  incoming_ = std::make_unique<IncomingChunks>(
      std::move(reader), target,
      [this](std::size_t offset, std::size_t) { put(offset / chunk_length()); });
  return {};
}

void RecordExchange::put(std::size_t chunk) {
  const std::size_t count = chunk_elements(outgoing_->tally.count(), chunk);
  const std::span<float> values = outgoing_->form(chunk * chunk_length(), count);
  if (outgoing_->writer->is_coded()) {
    put_encoded(chunk, values);
  } else {
    options_.codec.complete(chunk, values);
    outgoing_->writer->write(chunk, values);
    traffic_.pushed_bytes += values.size_bytes();
  }
  progress_.fetch_add(1, std::memory_order_relaxed);
}

// After an error nothing more is sent: the contribution is not committed.
void RecordExchange::put_encoded(std::size_t chunk, std::span<float> values) {
  if (outgoing_->error) return;
  const auto bytes = options_.codec.encode(chunk, values);
  if (!bytes) {
    outgoing_->error = bytes.error();
    return;
  }
  outgoing_->writer->write_encoded(chunk, *bytes);
  traffic_.pushed_bytes += bytes->size();
  if (!outgoing_->target) return;
  const auto sent = decode({.kind = options_.codec.kind()}, *bytes, values);
  SPEEDO_ASSERT(sent.has_value());
}

void RecordExchange::add(std::size_t offset, std::size_t count) {
  SPEEDO_ASSERT(outgoing_ != nullptr);
  const std::vector<std::size_t> whole = outgoing_->tally.add(offset, count);
  if (is_cancelled()) return;
  if (!outgoing_->target) {
    // From the end, as they are awaited.
    for (auto chunk = whole.rbegin(); chunk != whole.rend(); ++chunk) put(*chunk);
    if (!coming_) return;
    if (coming_->follows_chunks) {
      for (const std::size_t chunk : whole) coming_->record->allow(chunk);
    }
    advance();
    return;
  }
  if (!incoming_) return;
  for (const std::size_t chunk : whole) incoming_->request(chunk);
  if (incoming_->take_what_is_done()) return;
  // Overwritten, or the store is away: commit() begins anew.
  outgoing_->writer.reset();
  incoming_.reset();
}

// kNotFound: the weights were overwritten, and are gone; nothing of them is left.
Result<RecordInfo> RecordExchange::form_on_weights() {
  if (!incoming_) SPEEDO_TRY(open_weights_to_form_on());
  auto formed = [&]() -> Result<RecordInfo> {
    const RecordInfo info = incoming_->info();
    SPEEDO_TRY(take_all(*incoming_));
    if (outgoing_->error) return *outgoing_->error;
    SPEEDO_TRY(outgoing_->writer->finish());
    return info;
  }();
  // Ends before the target is read again.
  outgoing_->writer.reset();
  incoming_.reset();
  return formed;
}

Result<std::uint64_t> RecordExchange::commit() {
  SPEEDO_ASSERT(outgoing_ != nullptr && outgoing_->tally.is_complete());
  if (outgoing_->target) {
    SPEEDO_ASSIGN(const RecordInfo info, wait_for_weights(outgoing_->version, [this] {
                    return form_on_weights();
                  }));
    options_.codec.committed(outgoing_->run);
    outgoing_.reset();
    return info.version;
  }
  const std::unique_ptr<Outgoing> all = std::move(outgoing_);
  if (is_cancelled()) return cancelled_error();
  if (all->error) return *all->error;
  SPEEDO_TRY(all->writer->finish());
  options_.codec.committed(all->run);
  return all->base_version;
}

void RecordExchange::abandon() {
  if (outgoing_) outgoing_->writer.reset();
  incoming_.reset();
  outgoing_.reset();
}

void RecordExchange::withdraw(std::size_t count) {
  abandon();
  const auto erased = options_.store->erase(options_.contribution, count);
  if (erased) return;
  SPEEDO_WARN("the contribution of a run that was given up may stay in the store until the "
              "training ends: {}", erased.error().message);
}

}  // namespace speedo
