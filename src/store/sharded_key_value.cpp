#include "store/sharded_key_value.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/store/layout.hpp>

#include "base/parse_number.hpp"

namespace speedo {
namespace {

std::string start_of(std::string_view job) { return "speedo:{" + std::string(job) + "}"; }

// What follows the tag in keys of records that lie on one server; see part_key().
constexpr std::string_view kPartStart = ":part/";

// Of a key that ends in ":cNUMBER"; nothing of another.
std::optional<std::uint64_t> chunk_named(std::string_view key) {
  constexpr std::string_view kBefore = ":c";
  const std::size_t at = key.rfind(':');
  if (at == std::string_view::npos || !key.substr(at).starts_with(kBefore)) return std::nullopt;
  return parse_number<std::uint64_t>(key.substr(at + kBefore.size()));
}

}  // namespace

ShardedKeyValue::ShardedKeyValue(std::vector<std::shared_ptr<KeyValue>> servers,
                                 std::string_view job)
    : servers_(std::move(servers)), job_(job), start_(start_of(job)) {
  SPEEDO_ASSERT(servers_.size() > 1 && servers_.size() <= kRecordServersMax);
}

// Records of one part lie with it, manifest and all.
std::size_t ShardedKeyValue::part_of(std::string_view key) const {
  const std::string_view name = key.substr(std::min(key.size(), start_.size()));
  if (name.starts_with(kPartStart)) {
    const std::string_view rest = name.substr(kPartStart.size());
    const auto part = parse_number<std::uint64_t>(rest.substr(0, rest.find('/')));
    if (part) return static_cast<std::size_t>(*part % servers_.size());
  }
  const auto chunk = chunk_named(key);
  return chunk ? static_cast<std::size_t>(*chunk % servers_.size()) : 0;
}

std::string ShardedKeyValue::name_on(std::size_t part, const std::string& key) const {
  if (part == 0) return key;
  SPEEDO_ASSERT(key.starts_with(start_));
  return start_of(job_ + ':' + std::to_string(part)) + key.substr(start_.size());
}

void ShardedKeyValue::submit(KvPtr operation) {
  const bool has_keys = !operation->keys.empty();
  const std::size_t part = part_of(has_keys ? operation->keys.front() : operation->key);
  if (part > 0) {
    for (std::string& key : operation->keys) {
      SPEEDO_ASSERT(part_of(key) == part);
      key = name_on(part, key);
    }
    if (!operation->key.empty()) operation->key = name_on(part, operation->key);
    if (operation->master) {
      operation->master->term_key = name_on(part, operation->master->term_key);
      operation->master->lease_key = name_on(part, operation->master->lease_key);
    }
  }
  servers_[part]->submit(std::move(operation));
}

Result<std::vector<std::string>> ShardedKeyValue::list(std::string_view prefix) {
  std::vector<std::string> all;
  const std::size_t parts = prefix.starts_with(start_) ? servers_.size() : 1;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::string here = name_on(part, std::string(prefix));
    SPEEDO_ASSIGN(std::vector<std::string> keys, servers_[part]->list(here));
    for (std::string& key : keys) {
      if (part > 0) key = std::string(prefix) + key.substr(here.size());
      // What another number of servers has left is not this map's, and stays.
      if (part_of(key) == part) all.push_back(std::move(key));
    }
  }
  return all;
}

void ShardedKeyValue::stop_waiting() {
  for (const auto& server : servers_) server->stop_waiting();
}

}  // namespace speedo
