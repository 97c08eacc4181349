#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/digest.hpp>
#include <speedo/base/ids.hpp>
#include <speedo/base/result.hpp>
#include <speedo/store/parameter_store.hpp>

namespace speedo {

// A worker's side of the store: whole records in and out, chunk by chunk. Every chunk is counted as
// progress; between chunks the run may be cancelled (kUnavailable).
// Thread safety: one thread at a time.
class RecordExchange {
 public:
  using Cancelled = std::function<bool()>;
  // The elements [offset, offset + count) of what is written, final and unchanged from then on
  // until the record is written.
  using Form = std::function<std::span<const float>(std::size_t offset, std::size_t count)>;

  RecordExchange(std::shared_ptr<ParameterStore> store, Digest model, WorkerId worker,
                 std::string contribution, std::atomic<std::uint64_t>& progress);

  WorkerId worker() const { return worker_; }
  void allow_cancel(Cancelled cancelled) { cancelled_ = std::move(cancelled); }
  bool is_cancelled() const { return cancelled_ && cancelled_(); }

  // The newest weights; waits for `version` if they are older. Errors: those of the store,
  // kMismatch for another model's, kUnavailable if the version does not come.
  Result<RecordInfo> read_weights(std::uint64_t version, std::span<float> target);
  // Errors as above, kNotFound if there is none.
  Result<RecordInfo> read(std::string_view key, std::span<float> target);

  // Writes the contribution of a run.
  Result<void> contribute(std::uint64_t run, std::uint64_t base_version, std::size_t count,
                          const Form& form);
  // Reads the newest weights into `target` and contributes what is formed of each chunk of them as
  // soon as it is there. Returns what the weights are.
  Result<RecordInfo> contribute_on_weights(std::uint64_t run, std::uint64_t version,
                                           std::span<float> target, const Form& form);

 private:
  Result<RecordInfo> wait_for_weights(
      std::uint64_t version, const std::function<Result<RecordInfo>()>& attempt) const;
  // As read(), calling `arrived` after each chunk.
  using Arrived = std::function<void(std::size_t offset, std::size_t count)>;
  Result<RecordInfo> read_chunks(RecordReader& reader, std::span<float> target,
                                 const Arrived& arrived);
  Result<void> check(std::string_view key, const RecordInfo& info, std::size_t count) const;
  RecordInfo info_of(std::uint64_t run, std::uint64_t base_version, std::size_t count) const;

  const std::shared_ptr<ParameterStore> store_;
  const Digest model_;
  const WorkerId worker_;
  const std::string contribution_;
  std::atomic<std::uint64_t>& progress_;
  Cancelled cancelled_;
};

}  // namespace speedo
