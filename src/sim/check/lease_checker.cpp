#include "sim/check/lease_checker.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>

#include "store/mastership.hpp"

namespace speedo::sim {
namespace {

bool is_refusal(const KvOperation& operation) {
  return operation.kind == KvOperation::Kind::kClaim && !operation.master->is_new &&
         !took_effect(operation);
}

// A chunk that only manifests of this term or of an earlier one can name: see store/layout.hpp.
bool is_old_chunk(const std::string& key, std::uint64_t term) {
  const std::size_t fence = key.rfind(":t");
  if (fence == std::string::npos || key.find(":c", fence) == std::string::npos) return false;
  return std::stoull(key.substr(fence + 2)) <= term;
}

}  // namespace

void LeaseChecker::done(const KvOperation& operation, std::size_t server) {
  if (!operation.master) return;
  const KvMaster& master = *operation.master;
  if (operation.kind == KvOperation::Kind::kRelease && master.holder == holder_) holder_.clear();
  if (is_refusal(operation)) refused(master);
  if (!took_effect(operation)) return;
  if (operation.kind == KvOperation::Kind::kClaim) claimed(master);
  if (operation.kind != KvOperation::Kind::kRelease) {
    std::uint64_t& known = known_terms_[server];
    known = std::max(known, master.term);
  }
}

// A renewal by the newest master takes the lease from one that got it while the store had forgotten
// both.
void LeaseChecker::claimed(const KvMaster& master) {
  const bool held = !holder_.empty() && holder_ != master.holder && clock_.now() < until_;
  if (master.is_new && held && !is_dead_(holder_)) {
    violations_.report(Check::kLease,
                       fmt::format("{} is granted mastership while the lease of {} lasts",
                                   master.holder, holder_));
  }
  violations_.expect(Check::kLease, master.term >= known_terms_[0],
                     "a master that was replaced is granted its lease again");
  holder_ = master.holder;
  until_ = clock_.now() + kLeaseTime;
  refused_.erase(master.holder);
}

// Of an operation that is executed twice the second time is no new attempt.
void LeaseChecker::refused(const KvMaster& master) {
  const auto [at, is_first] = refused_.try_emplace(master.holder, clock_.now());
  violations_.expect(Check::kLease, is_first || at->second == clock_.now(),
                     "a master keeps on asking for a lease that it has lost");
}

void LeaseChecker::unanswered(const KvOperation& operation) {
  if (is_refusal(operation)) refused_.erase(operation.master->holder);
}

void LeaseChecker::asked_by_master(std::uint64_t term, const KvOperation& operation,
                                   std::size_t server) {
  const bool sets = operation.kind == KvOperation::Kind::kSet;
  if (!sets && operation.kind != KvOperation::Kind::kErase) return;
  if (!took_effect(operation)) return;
  if (term == 0) {
    return violations_.report(Check::kLease, "a master that was granted nothing changes the store");
  }
  const std::uint64_t known = known_terms_[server];
  if (term >= known) return;
  const auto judge = [&](const std::string& key) {
    if (is_old_chunk(key, term)) return;
    violations_.report(Check::kLease,
                       fmt::format("a master that was replaced has changed '{}': its term is {}, "
                                   "the newest {}",
                                   key, term, known));
  };
  if (sets) judge(operation.key);
  for (const std::string& key : operation.keys) judge(key);
}

void LeaseChecker::begins(std::uint64_t term) {
  violations_.expect(Check::kLease, term != 0, "a master begins that was granted nothing");
}

void LeaseChecker::store_lost_data(std::size_t server) {
  known_terms_[server] = 0;
  if (server == 0) holder_.clear();
}

}  // namespace speedo::sim
