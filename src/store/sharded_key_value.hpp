#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/key_value.hpp"

namespace speedo {

// A job's map over several servers: chunk C of every record lies on server C mod their number, and
// records of a part (part_key()) on the part's server, whole; all other keys lie on the first. On
// server K > 0 the job's keys have the hash tag {JOB:K}, so that the parts of a job can be told
// from each other. One map that itself is spread over servers by hash tags may stand for all of
// them; then the tags are those that part_tags() draws.
// Keys that callers name and see are those of layout.hpp. Thread safety: as a KeyValue.
class ShardedKeyValue : public KeyValue {
 public:
  // Requires: two servers or more, kRecordServersMax at most.
  ShardedKeyValue(std::vector<std::shared_ptr<KeyValue>> servers, std::string_view job);
  // `tags`: one a part, of the map that has all parts; the first is the job's name, the others
  // begin with "JOB:". Requires: the same of their number.
  ShardedKeyValue(std::shared_ptr<KeyValue> map, const std::vector<std::string>& tags);

  void submit(KvPtr operation) override;
  Result<std::vector<std::string>> list(std::string_view prefix) override;
  std::size_t parts() const override { return servers_.size(); }
  std::size_t part_of(std::string_view key) const override;
  void stop_waiting() override;
  Result<void> check_places() override;

 private:
  std::string name_on(std::size_t part, const std::string& key) const;

  Result<std::vector<std::string>> list_part(std::size_t part, std::string_view rest);
  Result<std::vector<std::string>> list_at_once(std::string_view rest);

  const std::vector<std::shared_ptr<KeyValue>> servers_;
  const bool is_one_map_;
  const std::vector<std::string> starts_;  // of all keys of the job, on each server
};

}  // namespace speedo
