#include "remote/transfer.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <speedo/base/clock.hpp>
#include <speedo/base/thread_name.hpp>

#include "base/log.hpp"
#include "base/memory_limit.hpp"
#include "remote/retries.hpp"

namespace speedo {

namespace {

constexpr std::uint64_t kPartsMax = 65536;

std::string size_text(std::uint64_t bytes) {
  return format_bytes(static_cast<std::int64_t>(bytes));
}

// The body of one answer, as it goes into the file.
class ArrivingSpan {
 public:
  ArrivingSpan(const Origin& origin, const FileFacts& facts, ByteSpan wanted)
      : origin_(origin), facts_(facts), wanted_(wanted) {}

  std::uint64_t bytes() const { return bytes_; }

  Result<void> take(const RemoteAnswer& answer, std::span<const std::byte> piece,
                    const PartialFile& file) {
    if (bytes_ == 0) SPEEDO_TRY(begin(answer));
    if (piece.size() > wanted_.bytes() - bytes_) {
      return broken(
          fmt::format("the server sends more than the {} bytes that it promised", wanted_.bytes()));
    }
    SPEEDO_TRY(file.write(wanted_.begin + bytes_, piece));
    if (digest_) digest_->add(piece);
    bytes_ += piece.size();
    return {};
  }

  // After the last piece.
  Result<void> end() {
    if (bytes_ < wanted_.bytes()) {
      return broken(
          fmt::format("the server sends {} bytes, but has promised {}", bytes_, wanted_.bytes()));
    }
    if (digest_ && digest_->finish() != promised_) {
      bytes_ = 0;
      return broken("the bytes that came are not those of the server's Content-MD5");
    }
    return {};
  }

 private:
  Result<void> begin(const RemoteAnswer& answer) {
    SPEEDO_TRY(origin_.check(answer, wanted_, facts_));
    if (auto md5 = digest_in_base64(DigestKind::kMd5, answer.header("content-md5"))) {
      promised_ = *std::move(md5);
      digest_.emplace(DigestKind::kMd5);
    }
    return {};
  }
  Error broken(const std::string& what) const {
    return {ErrorCode::kCorrupt, fmt::format("'{}': {}", origin_.uri().shown(), what)};
  }

  const Origin& origin_;
  const FileFacts& facts_;
  const ByteSpan wanted_;
  std::uint64_t bytes_ = 0;
  std::string promised_;
  std::optional<ByteDigest> digest_;
};

class Transfer {
 public:
  Transfer(const Origin& origin, const FileFacts& facts, const RemoteTerms& terms,
           PartialFile& file)
      : origin_(origin),
        facts_(facts),
        terms_(terms),
        file_(file),
        there_(file.parts().bytes_there()),
        noted_at_(steady_clock().now()) {}

  // On each of its threads.
  void bring_parts(ClientPool& clients) {
    auto client = clients.take();
    if (!client) return fail(client.error());
    while (const auto part = take_part()) {
      auto brought = bring(**client, *part);
      if (!brought) {
        fail(brought.error());
        break;
      }
    }
    clients.put_back(std::move(client).value());
  }

  Result<void> result() const {
    if (failure_) return *failure_;
    return {};
  }

 private:
  std::optional<std::size_t> take_part() {
    const std::lock_guard lock(mutex_);
    if (failure_) return std::nullopt;
    return file_.parts().take();
  }

  void fail(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = error;
  }

  // One part, from where an attempt broke off to its end.
  Result<void> bring(HttpClient& client, std::size_t part) {
    const ByteSpan whole = file_.parts().span(part);
    ByteSpan missing = whole;
    Retries retries(terms_, whole.bytes());
    while (missing.bytes() > 0) {
      RemoteAnswer answer;
      const std::uint64_t before = missing.begin;
      auto done = attempt(client, answer, missing);
      if (done) break;
      // Without ranges it can only be had from its beginning: then nothing was brought on.
      if (!facts_.has_ranges) missing = whole;
      const auto wait = retries.after(done.error(), missing.begin - before, answer.retry_after());
      if (!wait || has_failed() || !wait_unless_stopped(terms_, *wait)) return done;
      SPEEDO_INFO("{}; asking again after {} ms", done.error().message, wait->count());
    }
    const std::lock_guard lock(mutex_);
    return file_.note(part);
  }

  // Moves the beginning of `missing` behind what came.
  Result<void> attempt(HttpClient& client, RemoteAnswer& answer, ByteSpan& missing) {
    ArrivingSpan arriving(origin_, facts_, missing);
    auto done = client.perform(origin_.request(missing, facts_), answer,
                               [&](const RemoteAnswer& got, std::span<const std::byte> piece) {
                                 auto taken = arriving.take(got, piece, file_);
                                 if (taken) report(piece.size());
                                 return taken;
                               });
    if (done && !answer.is_success()) done = status_error(origin_.uri(), answer);
    if (done) done = arriving.end();
    missing.begin += arriving.bytes();
    return done;
  }

  bool has_failed() const {
    const std::lock_guard lock(mutex_);
    return failure_.has_value();
  }

  void report(std::size_t bytes) {
    const std::uint64_t there = there_ += bytes;
    const std::lock_guard lock(mutex_);
    const Instant now = steady_clock().now();
    if (now - noted_at_ < terms_.progress_interval) return;
    noted_at_ = now;
    SPEEDO_INFO("Fetching '{}': {} of {}", origin_.uri().shown(),
                size_text(std::min(there, facts_.bytes)), size_text(facts_.bytes));
  }

  const Origin& origin_;
  const FileFacts& facts_;
  const RemoteTerms& terms_;
  PartialFile& file_;
  std::atomic<std::uint64_t> there_;
  mutable std::mutex mutex_;  // of what follows, and of the file's parts
  Instant noted_at_;
  std::optional<Error> failure_;
};

}  // namespace

bool wait_unless_stopped(const RemoteTerms& terms, std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds kLook{50};
  for (auto left = time; left.count() > 0; left -= kLook) {
    if (terms.stopped && terms.stopped()) return false;
    std::this_thread::sleep_for(std::min(left, kLook));
  }
  return !terms.stopped || !terms.stopped();
}

std::uint64_t part_bytes_of(const FileFacts& facts, const RemoteTerms& terms) {
  if (!facts.has_ranges) return std::max<std::uint64_t>(facts.bytes, 1);
  return std::max(terms.part_bytes, facts.bytes / kPartsMax + 1);
}

Result<FileFacts> look_up(const Origin& origin, const RemoteTerms& terms, ClientPool& clients) {
  SPEEDO_ASSIGN(std::unique_ptr<HttpClient> client, clients.take());
  Retries retries(terms);
  for (;;) {
    RemoteAnswer answer;
    auto facts = origin.look(*client, answer);
    if (facts) {
      // Nobody could tell whether its parts are of one file.
      if (facts->version.empty()) facts->has_ranges = false;
      clients.put_back(std::move(client));
      return facts;
    }
    const auto wait = retries.after(facts.error(), 0, answer.retry_after());
    if (!wait || !wait_unless_stopped(terms, *wait)) return facts;
    SPEEDO_INFO("{}; asking again after {} ms", facts.error().message, wait->count());
  }
}

Result<void> transfer(const Origin& origin, const FileFacts& facts, const RemoteTerms& terms,
                      ClientPool& clients, PartialFile& file) {
  Transfer work(origin, facts, terms, file);
  const std::size_t threads =
      std::min(static_cast<std::size_t>(terms.connections), file.parts().count());
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads; ++i) {
    others.emplace_back([&] {
      name_thread("fetch");
      work.bring_parts(clients);
    });
  }
  work.bring_parts(clients);
  for (std::thread& other : others) other.join();
  return work.result();
}

}  // namespace speedo
