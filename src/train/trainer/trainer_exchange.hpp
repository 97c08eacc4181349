#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <speedo/base/digest.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/base/ids.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/base/platform.hpp>
#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>
#include <speedo/train/phase_times.hpp>

#include "train/trainer/coming_record.hpp"
#include "train/trainer/trainer_chunks.hpp"
#include "train/trainer/trainer_codec.hpp"

namespace speedo {

// A worker's side of the store: whole records in and out, chunk by chunk. Every chunk is counted as
// progress; between chunks the run may be cancelled (kUnavailable).
// Thread safety: one thread at a time.
class RecordExchange {
 public:
  using Cancelled = std::function<bool()>;
  // The elements [offset, offset + count) of what is written, final but for what the codec makes of
  // them, and unchanged by others from then on until the record is written. Called once for each
  // chunk.
  using Form = std::function<std::span<float>(std::size_t offset, std::size_t count)>;

  struct Options {
    std::shared_ptr<RecordStore> store;
    Digest model;
    WorkerId worker;
    std::uint64_t term = 0;    // of the master that it works for
    std::string contribution;  // key
    TrainerCodec& codec;       // of contributions
    Platform& platform;
  };
  RecordExchange(Options options, std::atomic<std::uint64_t>& progress)
      : options_(std::move(options)), progress_(progress) {}

  WorkerId worker() const { return options_.worker; }
  void allow_cancel(Cancelled cancelled) { cancelled_ = std::move(cancelled); }
  bool is_cancelled() const { return cancelled_ && cancelled_(); }

  // The newest weights; waits for `version` if they are older, so long at most. Errors: those of
  // the store, kMismatch for another model's, kUnavailable if the version does not come.
  Result<RecordInfo> read_weights(std::uint64_t version, std::span<float> target,
                                  Instant patience = kStoreCommandTimeout);
  // A record of `version` or newer. Errors as above, kNotFound if there is none.
  Result<RecordInfo> read(std::string_view key, std::span<float> target, std::uint64_t version);

  // Begins to read the newest weights, of `version` or newer, into `target`, which belongs to the
  // exchange until all of it was needed, or the next begin_weights(), begin_on_weights() or read.
  // Waits until such weights are there, not for their values. `arrived` is called once for each
  // chunk, here for what was expected and has come, else by the need_weights() that waits for it;
  // may be empty. Errors as above.
  using Arrived = IncomingChunks::Arrived;
  Result<RecordInfo> begin_weights(std::uint64_t version, std::span<float> target, Arrived arrived);
  // The same in two steps: what is opened may be read in another way as well.
  Result<std::unique_ptr<RecordReader>> open_weights(std::uint64_t version, std::size_t count);
  RecordInfo begin_weights(std::unique_ptr<RecordReader> reader, std::span<float> target,
                           Arrived arrived);
  // The same of another record, of exactly this version, into what `room` gives for it. Does not
  // wait. Errors: those of the store, kNotFound for another version, those of `room`.
  struct RecordRoom {
    std::span<float> target;
    // Those that are read; no other will be needed.
    std::span<const std::size_t> chunks;
  };
  using Room = std::function<Result<RecordRoom>(const RecordInfo& info)>;
  Result<RecordInfo> begin_record(std::string_view key, std::uint64_t version, const Room& room);
  // Waits for a range of them. Error: kNotFound if they were overwritten while they were read, and
  // have to be begun anew; those of the store.
  Result<void> need_weights(std::size_t offset, std::size_t count);
  // Whether all chunks of a range of them were in the target, as they are, before the record was
  // finished.
  bool were_here(std::size_t offset, std::size_t count) const;
  // How long need_weights() has waited so far.
  Instant waited() const { return waited_; }
  // What was formed to be sent, and what was opened to be read, so far.
  Traffic traffic() const { return traffic_; }

  // The record that begin_weights() or begin_record() will be asked for next is read while it is
  // being written, from advance() on: `target` is what they will be given. With `follows_chunks` a
  // chunk of it is free once the contribution's chunk of that number was added, else all are now.
  // Replaces what was expected before.
  void expect(std::string_view key, const AheadRecord& record, std::span<float> target,
              bool follows_chunks);
  // The same of what begin_record() will be asked for; all of the target is free now.
  void expect(std::string_view key, const AheadRecord& record, const RecordRoom& room);
  // Of what is expected: takes what has come and asks for more, without waiting; see ComingRecord.
  // Nothing is expected: nothing.
  std::optional<Instant> advance();
  // Of what is expected, whether all chunks of a range have come.
  bool has_come(std::size_t offset, std::size_t count) const;
  // Nothing is expected: the target is free.
  void expect_nothing() { coming_.reset(); }

  // Begins the contribution of a run, of `count` elements. It is visible once it is committed.
  void begin_contribution(std::uint64_t run, std::uint64_t base_version, std::size_t count,
                          Form form);
  // The same of what is formed on the newest weights, of `version` or newer: `target`, which
  // belongs to the exchange until then, receives them chunk by chunk before `form` is called for a
  // chunk, each not before it was added. May be called again for a chunk, on newer weights. What
  // was formed is what was sent: where a codec cannot give it back, it changes to what it gives.
  void begin_on_weights(std::uint64_t run, std::uint64_t version, std::span<float> target,
                        Form form);
  // A range of it is final: chunks that are whole by that are formed and go out, or their weights
  // are asked for. Requires: each element once.
  void add(std::size_t offset, std::size_t count);
  // Requires: everything was added. Returns the version of weights that it is a step from. Errors:
  // those of the store, and of read_weights(); kNotFinite if the codec can make nothing of it.
  Result<std::uint64_t> commit();
  // What was begun, either way, is not wanted: the memory behind it is free again. What is expected
  // stays so.
  void abandon();
  // Also erases the contribution, of `count` elements: a put that a master did not wait for may end
  // after whoever erases it has done so.
  void withdraw(std::size_t count);

 private:
  Result<RecordInfo> wait_for_weights(std::uint64_t version,
                                      const std::function<Result<RecordInfo>()>& attempt,
                                      Instant patience = kStoreCommandTimeout) const;
  Result<std::unique_ptr<RecordReader>> open_any(std::string_view key, std::uint64_t version);
  Result<std::unique_ptr<RecordReader>> open(std::string_view key, std::size_t count,
                                             std::uint64_t version);
  Result<void> take_all(IncomingChunks& incoming);
  std::unique_ptr<ComingRecord> make_coming(std::string_view key, const AheadRecord& record,
                                            std::span<float> target) const;
  std::unique_ptr<ComingRecord> take_coming(std::string_view key, const RecordInfo& info,
                                            std::span<const float> target);
  std::unique_ptr<RecordWriter> make_writer(std::uint64_t run, std::uint64_t base_version,
                                            std::size_t count) const;
  void put(std::size_t chunk);
  void put_encoded(std::size_t chunk, std::span<float> values);
  Result<void> open_weights_to_form_on();
  Result<RecordInfo> form_on_weights();

  const Options options_;
  std::atomic<std::uint64_t>& progress_;
  Cancelled cancelled_;
  Instant waited_{0};
  Traffic traffic_;

  // A contribution under way.
  struct Outgoing {
    std::uint64_t run, base_version;
    Form form;
    ChunkTally tally;
    // Of one that is formed on weights: where they go, and how new they are at least.
    std::optional<std::span<float>> target;
    std::uint64_t version;
    std::optional<Error> error;  // of the codec
    std::unique_ptr<RecordWriter> writer;  // last: it reads what `form` has given
  };
  // Weights under way.
  std::unique_ptr<IncomingChunks> incoming_;
  struct Coming {
    std::string key;
    bool follows_chunks;
    std::unique_ptr<ComingRecord> record;
  };
  std::optional<Coming> coming_;
  std::unique_ptr<Outgoing> outgoing_;
};

}  // namespace speedo
