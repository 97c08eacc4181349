#include "train/trainer_exchange.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>

#include "store/chunk_range.hpp"

namespace speedo {
namespace {

// Weights that the master announced are there, unless the store lost them, or they were overwritten
// while they were read: then newer ones come within seconds.
constexpr std::chrono::milliseconds kWeightsPoll{20};

Error cancelled_error() { return Error{ErrorCode::kUnavailable, "run cancelled"}; }

}  // namespace

RecordExchange::RecordExchange(std::shared_ptr<ParameterStore> store, Digest model,
                               WorkerId worker, std::string contribution,
                               std::atomic<std::uint64_t>& progress)
    : store_(std::move(store)),
      model_(model),
      worker_(worker),
      contribution_(std::move(contribution)),
      progress_(progress) {}

Result<void> RecordExchange::check(std::string_view key, const RecordInfo& info,
                                   std::size_t count) const {
  if (info.model != model_) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("record '{}' is of model {}, expected {}", key, to_string(info.model),
                             to_string(model_))};
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
  info.model = model_;
  info.version = run;
  info.base_version = base_version;
  info.worker = worker_.value;
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
  SPEEDO_ASSIGN(const std::unique_ptr<RecordReader> reader, store_->read(key));
  SPEEDO_TRY(check(key, reader->info(), target.size()));
  return read_chunks(*reader, target, {});
}

// `attempt` reads the newest weights; kNotFound: they are gone, or too old.
Result<RecordInfo> RecordExchange::wait_for_weights(
    std::uint64_t version, const std::function<Result<RecordInfo>()>& attempt) const {
  const Instant deadline = steady_clock().now() + kStoreCommandTimeout;
  while (true) {
    if (is_cancelled()) return cancelled_error();
    auto info = attempt();
    if (info && info->version >= version) return info;
    if (!info && info.error().code != ErrorCode::kNotFound) return info;
    if (steady_clock().now() > deadline) {
      return Error{ErrorCode::kUnavailable,
                   fmt::format("store: weights version {} did not appear; was the store emptied?",
                               version)};
    }
    std::this_thread::sleep_for(kWeightsPoll);
  }
}

Result<RecordInfo> RecordExchange::read_weights(std::uint64_t version, std::span<float> target) {
  return wait_for_weights(version, [&] { return read(weights_key(), target); });
}

Result<void> RecordExchange::contribute(std::uint64_t run, std::uint64_t base_version,
                                        std::size_t count, const Form& form) {
  const std::unique_ptr<RecordWriter> writer =
      store_->write(contribution_, info_of(run, base_version, count));
  for (std::size_t chunk = 0; chunk < chunk_count(count); ++chunk) {
    if (is_cancelled()) return cancelled_error();
    writer->write(chunk, form(chunk * kChunkElements, chunk_elements(count, chunk)));
    progress_.fetch_add(1, std::memory_order_relaxed);
  }
  return writer->finish();
}

Result<RecordInfo> RecordExchange::contribute_on_weights(std::uint64_t run, std::uint64_t version,
                                                         std::span<float> target,
                                                         const Form& form) {
  const auto attempt = [&]() -> Result<RecordInfo> {
    SPEEDO_ASSIGN(const std::unique_ptr<RecordReader> reader, store_->read(weights_key()));
    const RecordInfo& weights = reader->info();
    SPEEDO_TRY(check(weights_key(), weights, target.size()));
    if (weights.version < version) return weights;
    // Ends before the target is read again, should the weights be overwritten meanwhile.
    const std::unique_ptr<RecordWriter> writer =
        store_->write(contribution_, info_of(run, weights.version, target.size()));
    SPEEDO_TRY(read_chunks(*reader, target, [&](std::size_t offset, std::size_t count) {
      writer->write(offset / kChunkElements, form(offset, count));
    }));
    SPEEDO_TRY(writer->finish());
    return weights;
  };
  return wait_for_weights(version, attempt);
}

}  // namespace speedo
