#include "train/trainer_exchange.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "store/chunk_range.hpp"

namespace speedo {
namespace {

// Weights that the master announced are there, unless the store lost them, or they were overwritten
// while they were read: then newer ones come within seconds.
constexpr std::chrono::milliseconds kWeightsPoll{20};

Error cancelled_error() { return Error{ErrorCode::kUnavailable, "run cancelled"}; }

}  // namespace

Result<void> RecordExchange::check(std::string_view key, const RecordInfo& info,
                                   std::size_t count) const {
  if (info.model != options_.model) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("record '{}' is of model {}, expected {}", key, to_string(info.model),
                             to_string(options_.model))};
  }
  if (info.element_count != count) {
    return Error{ErrorCode::kMismatch, fmt::format("record '{}' has {} floats, expected {}", key,
                                                   info.element_count, count)};
  }
  return {};
}

RecordInfo RecordExchange::info_of(std::uint64_t run, std::uint64_t base_version,
                                   std::size_t count) const {
  RecordInfo info;
  info.model = options_.model;
  info.version = run;
  info.base_version = base_version;
  info.worker = options_.worker.value;
  info.element_count = count;
  return info;
}

Result<RecordInfo> RecordExchange::read_chunks(RecordReader& reader, std::span<float> target,
                                               const Arrived& arrived) {
  const std::size_t count = chunk_count(target.size());
  for (std::size_t chunk = 0; chunk < count; ++chunk) {
    reader.request(chunk, chunk_of(target, chunk));
  }
  for (std::size_t chunk = 0; chunk < count; ++chunk) {
    if (is_cancelled()) return cancelled_error();
    SPEEDO_TRY(reader.wait(chunk));
    progress_.fetch_add(1, std::memory_order_relaxed);
    if (arrived) arrived(chunk * kChunkElements, chunk_elements(target.size(), chunk));
  }
  return reader.info();
}

Result<RecordInfo> RecordExchange::read(std::string_view key, std::span<float> target) {
  SPEEDO_ASSIGN(const std::unique_ptr<RecordReader> reader, options_.store->read(key));
  SPEEDO_TRY(check(key, reader->info(), target.size()));
  return read_chunks(*reader, target, {});
}

// `attempt` reads the newest weights; kNotFound: they are gone, or too old.
Result<RecordInfo> RecordExchange::wait_for_weights(
    std::uint64_t version, const std::function<Result<RecordInfo>()>& attempt) const {
  const Clock& clock = options_.platform.clock();
  const Instant deadline = clock.now() + kStoreCommandTimeout;
  while (true) {
    if (is_cancelled()) return cancelled_error();
    auto info = attempt();
    if (info && info->version >= version) return info;
    if (!info && info.error().code != ErrorCode::kNotFound) return info;
    if (clock.now() > deadline) {
      return Error{ErrorCode::kUnavailable,
                   fmt::format("store: weights version {} did not appear; was the store emptied?",
                               version)};
    }
    options_.platform.sleep(kWeightsPoll);
  }
}

Result<RecordInfo> RecordExchange::read_weights(std::uint64_t version, std::span<float> target) {
  return wait_for_weights(version, [&] { return read(weights_key(), target); });
}

Result<RecordInfo> RecordExchange::begin_weights(std::uint64_t version, std::span<float> target,
                                                 Arrived arrived) {
  incoming_ = {};
  SPEEDO_ASSIGN(const RecordInfo info, wait_for_weights(version, [&]() -> Result<RecordInfo> {
    SPEEDO_ASSIGN(incoming_.reader, options_.store->read(weights_key()));
    SPEEDO_TRY(check(weights_key(), incoming_.reader->info(), target.size()));
    return incoming_.reader->info();
  }));
  incoming_.count = target.size();
  incoming_.arrived = std::move(arrived);
  incoming_.here.assign(chunk_count(target.size()), false);
  for (std::size_t chunk = 0; chunk < incoming_.here.size(); ++chunk) {
    incoming_.reader->request(chunk, chunk_of(target, chunk));
  }
  return info;
}

Result<void> RecordExchange::need_weights(std::size_t offset, std::size_t count) {
  SPEEDO_ASSERT(incoming_.reader != nullptr && offset + count <= incoming_.count);
  if (count == 0) return {};
  const std::size_t end = (offset + count - 1) / kChunkElements + 1;
  for (std::size_t chunk = offset / kChunkElements; chunk < end; ++chunk) {
    if (incoming_.here[chunk]) continue;
    if (is_cancelled()) return cancelled_error();
    const Instant start = options_.platform.clock().now();
    SPEEDO_TRY(incoming_.reader->wait(chunk));
    waited_ += options_.platform.clock().now() - start;
    progress_.fetch_add(1, std::memory_order_relaxed);
    incoming_.here[chunk] = true;
    if (incoming_.arrived) {
      incoming_.arrived(chunk * kChunkElements, chunk_elements(incoming_.count, chunk));
    }
  }
  return {};
}

void RecordExchange::begin_contribution(std::uint64_t run, std::uint64_t base_version,
                                        std::size_t count, Form form) {
  SPEEDO_ASSERT(outgoing_.writer == nullptr);
  outgoing_.writer =
      options_.store->write(options_.contribution, info_of(run, base_version, count));
  outgoing_.count = count;
  outgoing_.form = std::move(form);
  outgoing_.lacking.resize(chunk_count(count));
  for (std::size_t chunk = 0; chunk < outgoing_.lacking.size(); ++chunk) {
    outgoing_.lacking[chunk] = chunk_elements(count, chunk);
  }
}

void RecordExchange::add(std::size_t offset, std::size_t count) {
  SPEEDO_ASSERT(outgoing_.writer != nullptr && offset + count <= outgoing_.count);
  const std::size_t end = offset + count;
  while (offset < end) {
    const std::size_t chunk = offset / kChunkElements;
    const std::size_t chunk_end = chunk * kChunkElements + chunk_elements(outgoing_.count, chunk);
    const std::size_t part = std::min(end, chunk_end) - offset;
    SPEEDO_ASSERT(part <= outgoing_.lacking[chunk]);
    outgoing_.lacking[chunk] -= part;
    offset += part;
    if (outgoing_.lacking[chunk] != 0 || is_cancelled()) continue;
    const std::size_t elements = chunk_elements(outgoing_.count, chunk);
    outgoing_.writer->write(chunk, outgoing_.form(chunk * kChunkElements, elements));
    progress_.fetch_add(1, std::memory_order_relaxed);
  }
}

Result<void> RecordExchange::commit() {
  SPEEDO_ASSERT(outgoing_.writer != nullptr);
  const Outgoing all = std::exchange(outgoing_, {});
  for (const std::size_t lacking : all.lacking) SPEEDO_ASSERT(lacking == 0);
  if (is_cancelled()) return cancelled_error();
  return all.writer->finish();
}

void RecordExchange::abandon() {
  incoming_ = {};
  outgoing_ = {};
}

Result<RecordInfo> RecordExchange::contribute_on_weights(std::uint64_t run, std::uint64_t version,
                                                         std::span<float> target,
                                                         const Form& form) {
  const auto attempt = [&]() -> Result<RecordInfo> {
    SPEEDO_ASSIGN(const std::unique_ptr<RecordReader> reader, options_.store->read(weights_key()));
    const RecordInfo& weights = reader->info();
    SPEEDO_TRY(check(weights_key(), weights, target.size()));
    if (weights.version < version) return weights;
    // Ends before the target is read again, should the weights be overwritten meanwhile.
    const std::unique_ptr<RecordWriter> writer =
        options_.store->write(options_.contribution, info_of(run, weights.version, target.size()));
    SPEEDO_TRY(read_chunks(*reader, target, [&](std::size_t offset, std::size_t count) {
      writer->write(offset / kChunkElements, form(offset, count));
    }));
    SPEEDO_TRY(writer->finish());
    return weights;
  };
  return wait_for_weights(version, attempt);
}

}  // namespace speedo
