#include "sim/store_checker.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include <speedo/store/parameter_store.hpp>

#include "speedo.pb.h"
#include "store/record_codec.hpp"

namespace speedo::sim {

StoreChecker::StoreChecker(StoreServer& server, const std::string& job,
                           std::uint64_t publish_interval, Violations& violations)
    : server_(server),
      manifest_key_(RecordKeys(job, weights_key()).manifest()),
      publish_interval_(publish_interval),
      violations_(violations) {}

void StoreChecker::granted(std::uint64_t epoch) {
  violations_.expect(epoch > granted_, "mastership granted with an epoch that is not the highest");
  granted_ = std::max(granted_, epoch);
  newest_ = std::max(newest_, epoch);
}

// What it has lost it may be told again, by whoever comes first; the newest master has the last
// word.
void StoreChecker::restarted() {
  granted_ = 0;
  last_ = {};
  read(last_);
}

bool StoreChecker::read(Seen& seen) {
  auto operation = std::make_shared<KvOperation>();
  operation->kind = KvOperation::Kind::kGetWhole;
  operation->key = manifest_key_;
  server_.map().submit(operation);
  if (operation->error) return false;
  const auto manifest = decode_manifest(operation->text);
  if (!manifest) {
    violations_.report("the weights' manifest is damaged");
    return false;
  }
  record::Session session;
  violations_.expect(session.ParseFromString(manifest->info.state),
                     "weights were published without the session's state");
  seen = {manifest->info.epoch, manifest->info.version, session.iteration()};
  return true;
}

void StoreChecker::done(const KvOperation& operation) {
  const bool writes = operation.kind == KvOperation::Kind::kSet && operation.key == manifest_key_;
  Seen now;
  if (!writes || !read(now)) return;
  if (now.epoch == last_.epoch && now.version == last_.version) return;
  if (now.epoch < std::max(granted_, last_.epoch)) {
    violations_.report(fmt::format("a stale master's weights are read: epoch {} after {}",
                                   now.epoch, std::max(granted_, last_.epoch)));
  }
  const bool forgot = granted_ < newest_ && last_.epoch < newest_;
  granted_ = std::max(granted_, now.epoch);
  if (now.epoch == last_.epoch) {
    violations_.expect(now.version > last_.version, "published versions go back");
    violations_.expect(now.iteration >= last_.iteration, "iterations go back within one master");
  } else if (!forgot && now.iteration + publish_interval_ + 1 < last_.iteration) {
    violations_.report(fmt::format("iterations go back from {} to {}, the publish interval is {}",
                                   last_.iteration, now.iteration, publish_interval_));
  }
  last_ = now;
}

}  // namespace speedo::sim
