#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <speedo/store/record_store.hpp>

namespace speedo::test {

// A store that fails at its k-th operation from now on: before it takes effect, or after (the
// answer is lost). Reading counts as well. Or one that refuses writes alone, answers nobody, or has
// lost the chunks of its records.
class FailingStore : public RecordStore {
 public:
  enum class When { kBefore, kAfter };

  explicit FailingStore(std::shared_ptr<RecordStore> store) : store_(std::move(store)) {}

  // 0: never.
  void fail_at(std::uint64_t operation, When when, ErrorCode code = ErrorCode::kUnavailable) {
    left_ = operation;
    when_ = when;
    code_ = code;
    failed_ = false;
  }
  bool has_failed() const { return failed_; }
  // From now on every record is refused.
  void refuse_writes(bool on) { refuses_writes_ = on; }
  // From now on whoever opens a record, or would make one visible, waits: for so long that a test
  // which waits for it fails, but not for ever.
  void hang(bool on) { hangs_ = on; }
  bool is_waited_for() const { return waiting_ > 0; }
  // From now on no chunk is there that is read.
  void lose_chunks(bool on) { has_no_chunks_ = on; }
  // Records that were opened so far.
  std::uint64_t reads() const { return reads_; }

  std::unique_ptr<RecordWriter> write(std::string_view key, const RecordInfo& info) override {
    return std::make_unique<Writer>(*this, store_->write(key, info));
  }
  Result<std::unique_ptr<RecordReader>> read(std::string_view key) override {
    wait_while_it_hangs();
    ++reads_;
    return attempt([&] { return wrap(store_->read(key)); });
  }
  std::vector<Result<std::unique_ptr<RecordReader>>> read_all(
      std::span<const std::string> keys) override {
    std::vector<Result<std::unique_ptr<RecordReader>>> readers;
    for (const std::string& key : keys) readers.push_back(read(key));
    return readers;
  }
  std::unique_ptr<AheadReader> read_ahead(std::string_view key,
                                          const AheadRecord& record) override {
    return store_->read_ahead(key, record);
  }
  using RecordStore::erase;
  Result<void> erase(std::string_view key, std::uint64_t element_count) override {
    return attempt([&] { return store_->erase(key, element_count); });
  }
  Result<void> clear_contributions() override { return store_->clear_contributions(); }

 private:
  class Writer : public RecordWriter {
   public:
    Writer(FailingStore& store, std::unique_ptr<RecordWriter> writer)
        : store_(store), writer_(std::move(writer)) {}
    void write(std::size_t chunk, std::span<const float> values) override {
      writer_->write(chunk, values);
    }
    void set_state(std::string state) override { writer_->set_state(std::move(state)); }
    Result<void> finish() override {
      store_.wait_while_it_hangs();
      if (store_.refuses_writes_) {
        store_.failed_ = true;
        return Error{ErrorCode::kUnavailable, kFailure};
      }
      return store_.attempt([this] { return writer_->finish(); });
    }

   private:
    FailingStore& store_;
    std::unique_ptr<RecordWriter> writer_;
  };
  class Reader : public RecordReader {
   public:
    Reader(FailingStore& store, std::unique_ptr<RecordReader> reader)
        : store_(store), reader_(std::move(reader)) {}
    const RecordInfo& info() const override { return reader_->info(); }
    void request(std::size_t chunk, std::span<float> target) override {
      reader_->request(chunk, target);
    }
    bool is_done(std::size_t chunk) const override { return reader_->is_done(chunk); }
    Result<void> wait(std::size_t chunk) override {
      if (store_.has_no_chunks_) return Error{ErrorCode::kNotFound, kFailure};
      return store_.attempt([&] { return reader_->wait(chunk); });
    }
    std::uint64_t checksum(std::size_t chunk) const override { return reader_->checksum(chunk); }

   private:
    FailingStore& store_;
    std::unique_ptr<RecordReader> reader_;
  };

  Result<std::unique_ptr<RecordReader>> wrap(Result<std::unique_ptr<RecordReader>> reader) {
    if (!reader) return reader;
    return std::unique_ptr<RecordReader>(std::make_unique<Reader>(*this, std::move(*reader)));
  }

  void wait_while_it_hangs() {
    const auto end = std::chrono::steady_clock::now() + kHangMax;
    ++waiting_;
    while (hangs_ && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    --waiting_;
  }

  template <class Operation>
  auto attempt(const Operation& operation) -> decltype(operation()) {
    if (left_ == 0 || --left_ > 0) return operation();
    failed_ = true;
    if (when_ == When::kAfter) (void)operation();
    return Error{code_, kFailure};
  }

  static constexpr std::chrono::seconds kHangMax{10};
  static constexpr const char* kFailure = "a failure made by the test";
  const std::shared_ptr<RecordStore> store_;
  std::atomic<std::uint64_t> left_{0};
  std::atomic<bool> refuses_writes_{false};
  std::atomic<bool> failed_{false};
  std::atomic<bool> hangs_{false};
  std::atomic<bool> has_no_chunks_{false};
  std::atomic<std::uint64_t> reads_{0};
  std::atomic<int> waiting_{0};
  When when_ = When::kBefore;
  ErrorCode code_ = ErrorCode::kUnavailable;
};

}  // namespace speedo::test
