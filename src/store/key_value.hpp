#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// Which master an operation is made by, and where mastership of its job is kept; the rules are in
// store/mastership.hpp.
struct KvMaster {
  std::string term_key, lease_key;
  std::uint64_t term = 0;
  // kSet and kErase of a record that several of one master's programs put one after another: where
  // the number of the latest is kept, and this one's. Empty: there is one writer.
  std::string writer_key;
  std::uint32_t writer = 0;
  // kClaim and kRelease; see MasterClaim.
  std::string holder;
  bool is_new = false;  // kClaim: the term is a proposal
  bool force = false;
  std::string dead_holder;
  std::chrono::milliseconds time{0};
};

// One request to a KeyValue. The maker keeps the memory it points to until is_done().
// Thread safety: the maker fills it in before submit(), the KeyValue owns it until complete().
class KvOperation {
 public:
  enum class Kind {
    kSet,       // key = head + body
    kGetExact,  // head + target = value; its length must be that of both
    kGetWhole,  // text = value
    kGetStart,  // text = the value's first `start_bytes`; empty if there is no such key
    kErase,     // removes `keys`
    kClaim,     // makes `master` the master, if the rules allow it
    kRelease,   // it is master no longer
  };
  Kind kind = Kind::kGetWhole;
  std::string key;
  std::vector<std::string> keys;
  std::string head;
  std::span<const std::byte> body;
  std::span<std::byte> target;
  std::string text;
  std::size_t start_bytes = 0;
  std::uint32_t expiry_seconds = 0;  // kSet: 0 for never
  // kSet, kErase: done by this incarnation alone, kMismatch from another one; 0: by any. Where
  // another server may answer in its place (Redis Cluster, Sentinel) it is not heeded.
  std::uint64_t only_server = 0;
  // kSet, kErase: done only if no higher term is stored, and no later writer, in one atomic step.
  // `text` then holds the answer, as it does of kClaim and kRelease; see decode_answer().
  std::optional<KvMaster> master;
  // kSet: called once, just before sending and on the sending thread, to make `head` from `body`
  // while it brings the body into the cache.
  std::function<std::string(std::span<const std::byte>)> make_head;

  // Counted up whenever some of the request goes out over a network, or of the answer comes in;
  // outlives the operation. Null: nobody wants to know.
  std::atomic<std::uint64_t>* progress = nullptr;

  // Results, to be read once done. kNotFound: no such key. kCorrupt: another length; then `head`
  // holds the first bytes of the value.
  std::optional<Error> error;
  std::uint64_t server = 0;  // which incarnation of which server answered

  // Whether an incarnation that answers as `met` may do it.
  bool may_be_done_by(std::uint64_t met) const { return only_server == 0 || only_server == met; }
  bool has_answer() const { return master.has_value(); }
  bool is_read() const {
    return kind == Kind::kGetExact || kind == Kind::kGetWhole || kind == Kind::kGetStart;
  }
  void count_progress() const {
    if (progress != nullptr) progress->fetch_add(1, std::memory_order_relaxed);
  }
  std::size_t bytes() const { return head.size() + body.size() + target.size(); }
  bool is_done() const { return done_.load(std::memory_order_acquire); }
  void wait() const { done_.wait(false, std::memory_order_acquire); }
  // The result is no longer wanted: do not retry.
  void abandon() { abandoned_.store(true, std::memory_order_relaxed); }
  bool is_abandoned() const { return abandoned_.load(std::memory_order_relaxed); }
  void complete(std::optional<Error> failure = std::nullopt) {
    error = std::move(failure);
    done_.store(true, std::memory_order_release);
    done_.notify_all();
  }

 private:
  std::atomic<bool> done_{false};
  std::atomic<bool> abandoned_{false};
};
using KvPtr = std::shared_ptr<KvOperation>;

// An asynchronous map of byte strings: the seam between records and what keeps them. Every
// operation is idempotent, completes in bounded time, and may be executed more than once. Thread
// safety: all methods from any thread.
class KeyValue {
 public:
  virtual ~KeyValue() = default;
  // Queues and returns; the first after stop_waiting() may wait for some seconds until it is known
  // where the map is. Operations may be executed in any order.
  virtual void submit(KvPtr operation) = 0;
  // Every key that begins with `prefix`, in any order, some of them perhaps twice. Of keys that
  // come or go meanwhile it may name some.
  virtual Result<std::vector<std::string>> list(std::string_view prefix) = 0;
  // Servers that the map is spread over, and the one that has a key. An operation of several keys
  // names those of one server; its incarnations are counted by server.
  virtual std::size_t parts() const { return 1; }
  virtual std::size_t part_of(std::string_view /*key*/) const { return 0; }
  // See ParameterStore::stop_waiting(). By default there is nothing that could be waited for.
  virtual void stop_waiting() {}
  // Error kMismatch if a server holds what lies on another one in their present order; those of
  // list().
  virtual Result<void> check_places() { return {}; }
};

// Their results are no longer wanted, and the memory they point to is: waits until nothing touches
// it. Null: none was submitted.
void abandon(std::span<const KvPtr> operations);

// What an operation meets that is not for this server's incarnation.
Error another_incarnation(const KvOperation& operation);

// These keys in groups of one server each, in the order of the servers; none is empty.
std::vector<std::vector<std::string>> by_part(const KeyValue& map, std::vector<std::string> keys);

// The reading of a value, to be submitted.
KvPtr get_whole(std::string key);

// Submits and waits.
Result<void> execute(KeyValue& map, const KvPtr& operation);

}  // namespace speedo
