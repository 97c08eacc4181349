#include "store/sharded_key_value.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/store/layout.hpp>

#include "base/parse_number.hpp"
#include "store/record_codec.hpp"

namespace speedo {
namespace {

std::string start_of(std::string_view tag) {
  return std::string(kJobKeyStart) + std::string(tag) + "}";
}

std::vector<std::string> starts_of(std::span<const std::string> tags) {
  std::vector<std::string> starts;
  for (const std::string& tag : tags) starts.push_back(start_of(tag));
  return starts;
}

std::vector<std::string> numbered_tags(std::string_view job, std::size_t count) {
  std::vector<std::string> tags = {std::string(job)};
  while (tags.size() < count) tags.push_back(tags[0] + ':' + std::to_string(tags.size()));
  return tags;
}

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
    : servers_(std::move(servers)),
      is_one_map_(false),
      starts_(starts_of(numbered_tags(job, servers_.size()))) {
  SPEEDO_ASSERT(servers_.size() > 1 && servers_.size() <= kRecordServersMax);
}

ShardedKeyValue::ShardedKeyValue(std::shared_ptr<KeyValue> map,
                                 const std::vector<std::string>& tags)
    : servers_(tags.size(), std::move(map)), is_one_map_(true), starts_(starts_of(tags)) {
  SPEEDO_ASSERT(servers_.size() > 1 && servers_.size() <= kRecordServersMax);
}

// Records of one part lie with it, manifest and all.
std::size_t ShardedKeyValue::part_of(std::string_view key) const {
  const std::string_view name = key.substr(std::min(key.size(), starts_[0].size()));
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
  SPEEDO_ASSERT(key.starts_with(starts_[0]));
  return starts_[part] + key.substr(starts_[0].size());
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
      std::string& writer_key = operation->master->writer_key;
      if (!writer_key.empty()) writer_key = name_on(part, writer_key);
    }
  }
  servers_[part]->submit(std::move(operation));
}

Result<std::vector<std::string>> ShardedKeyValue::list(std::string_view prefix) {
  if (!prefix.starts_with(starts_[0])) return servers_[0]->list(prefix);
  const std::string_view rest = prefix.substr(starts_[0].size());
  SPEEDO_ASSIGN(std::vector<std::string> all, list_part(0, rest));
  if (is_one_map_) {
    SPEEDO_ASSIGN(const std::vector<std::string> others, list_at_once(rest));
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }
  for (std::size_t part = 1; part < servers_.size(); ++part) {
    SPEEDO_ASSIGN(const std::vector<std::string> keys, list_part(part, rest));
    all.insert(all.end(), keys.begin(), keys.end());
  }
  return all;
}

// Under the names that callers know. What another number of servers has left is not this map's, and
// stays.
Result<std::vector<std::string>> ShardedKeyValue::list_part(std::size_t part,
                                                            std::string_view rest) {
  SPEEDO_ASSIGN(std::vector<std::string> keys,
                servers_[part]->list(starts_[part] + std::string(rest)));
  for (std::string& key : keys) key = starts_[0] + key.substr(starts_[part].size());
  std::erase_if(keys, [&](const std::string& key) { return part_of(key) != part; });
  return keys;
}

Result<void> ShardedKeyValue::check_places() {
  if (is_one_map_) return {};
  const std::string_view any = std::string_view(starts_[0]).substr(0, starts_[0].size() - 1);
  for (std::size_t part = 0; part < servers_.size(); ++part) {
    SPEEDO_ASSIGN(const std::vector<std::string> keys, servers_[part]->list(any));
    for (std::size_t other = 0; other < servers_.size(); ++other) {
      // Of its records: mastership is claimed before anybody looks.
      const std::string records = starts_[other] + ':';
      const bool is_others = other != part && std::ranges::any_of(keys, [&](const auto& key) {
        return key.starts_with(records);
      });
      if (!is_others) continue;
      return Error{ErrorCode::kMismatch,
                   "server " + std::to_string(part + 1) +
                       " of --redis has what the job keeps on its server " +
                       std::to_string(other + 1) +
                       ": give the servers that the job began with, in their order, go on from "
                       "a checkpoint file with --resume=FILE.speedo, or start anew without "
                       "--resume"};
    }
  }
  return {};
}

// All parts but the first: to list means to go through all keys of all servers, so it is done once.
Result<std::vector<std::string>> ShardedKeyValue::list_at_once(std::string_view rest) {
  const std::string before_numbers = starts_[0].substr(0, starts_[0].size() - 1) + ':';
  SPEEDO_ASSIGN(const std::vector<std::string> keys, servers_[0]->list(before_numbers));
  std::vector<std::string> all;
  for (const std::string& key : keys) {
    const std::size_t end = key.find('}');
    const std::string_view start = std::string_view(key).substr(0, end + 1);
    const auto found = std::find(starts_.begin() + 1, starts_.end(), start);
    if (end == std::string::npos || found == starts_.end()) continue;
    const std::string_view name = std::string_view(key).substr(end + 1);
    if (!name.starts_with(rest)) continue;
    std::string known = starts_[0] + std::string(name);
    if (part_of(known) != static_cast<std::size_t>(found - starts_.begin())) continue;
    all.push_back(std::move(known));
  }
  return all;
}

void ShardedKeyValue::stop_waiting() {
  for (const auto& server : servers_) server->stop_waiting();
}

}  // namespace speedo
