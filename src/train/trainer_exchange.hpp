#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <speedo/base/digest.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/base/ids.hpp>
#include <speedo/base/platform.hpp>
#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>

namespace speedo {

// A worker's side of the store: whole records in and out, chunk by chunk. Every chunk is counted as
// progress; between chunks the run may be cancelled (kUnavailable).
// Thread safety: one thread at a time.
class RecordExchange {
 public:
  using Cancelled = std::function<bool()>;
  // The elements [offset, offset + count) of what is written, final and unchanged from then on
  // until the record is written. Called once for each chunk.
  using Form = std::function<std::span<const float>(std::size_t offset, std::size_t count)>;

  struct Options {
    std::shared_ptr<RecordStore> store;
    Digest model;
    WorkerId worker;
    std::string contribution;  // key
    Platform& platform;
  };
  RecordExchange(Options options, std::atomic<std::uint64_t>& progress)
      : options_(std::move(options)), progress_(progress) {}

  WorkerId worker() const { return options_.worker; }
  void allow_cancel(Cancelled cancelled) { cancelled_ = std::move(cancelled); }
  bool is_cancelled() const { return cancelled_ && cancelled_(); }

  // The newest weights; waits for `version` if they are older. Errors: those of the store,
  // kMismatch for another model's, kUnavailable if the version does not come.
  Result<RecordInfo> read_weights(std::uint64_t version, std::span<float> target);
  // Errors as above, kNotFound if there is none.
  Result<RecordInfo> read(std::string_view key, std::span<float> target);

  // Begins to read the newest weights, of `version` or newer, into `target`, which belongs to the
  // exchange until all of it was needed, or the next begin_weights() or read. Waits until such
  // weights are there, not for their values. `arrived` is called once for each chunk, by the
  // need_weights() that waits for it; may be empty. Errors as above.
  using Arrived = std::function<void(std::size_t offset, std::size_t count)>;
  Result<RecordInfo> begin_weights(std::uint64_t version, std::span<float> target, Arrived arrived);
  // Waits for a range of them. Error: kNotFound if they were overwritten while they were read, and
  // have to be begun anew; those of the store.
  Result<void> need_weights(std::size_t offset, std::size_t count);
  // How long need_weights() has waited so far.
  Instant waited() const { return waited_; }

  // Begins the contribution of a run, of `count` elements. It is visible once it is committed.
  void begin_contribution(std::uint64_t run, std::uint64_t base_version, std::size_t count,
                          Form form);
  // A range of it is final: chunks that are whole by that are formed and go out. Requires: each
  // element once.
  void add(std::size_t offset, std::size_t count);
  // Requires: everything was added. Errors: those of the store.
  Result<void> commit();
  // What was begun, either way, is not wanted: the memory behind it is free again.
  void abandon();
  // Reads the newest weights into `target` and contributes what is formed of each chunk of them as
  // soon as it is there. Returns what the weights are.
  Result<RecordInfo> contribute_on_weights(std::uint64_t run, std::uint64_t version,
                                           std::span<float> target, const Form& form);

 private:
  Result<RecordInfo> wait_for_weights(
      std::uint64_t version, const std::function<Result<RecordInfo>()>& attempt) const;
  // As read(), calling `arrived` after each chunk.
  Result<RecordInfo> read_chunks(RecordReader& reader, std::span<float> target,
                                 const Arrived& arrived);
  Result<void> check(std::string_view key, const RecordInfo& info, std::size_t count) const;
  RecordInfo info_of(std::uint64_t run, std::uint64_t base_version, std::size_t count) const;

  const Options options_;
  std::atomic<std::uint64_t>& progress_;
  Cancelled cancelled_;

  // Weights under way.
  struct Incoming {
    std::unique_ptr<RecordReader> reader;
    std::size_t count = 0;
    Arrived arrived;
    std::vector<bool> here;  // by chunk
  };
  Incoming incoming_;
  Instant waited_{0};
  // A contribution under way.
  struct Outgoing {
    std::unique_ptr<RecordWriter> writer;
    std::size_t count = 0;
    Form form;
    std::vector<std::size_t> lacking;  // elements of each chunk
  };
  Outgoing outgoing_;
};

}  // namespace speedo
