#include "store/key_value.hpp"

#include <map>
#include <utility>

namespace speedo {

std::vector<std::vector<std::string>> by_part(const KeyValue& map, std::vector<std::string> keys) {
  std::map<std::size_t, std::vector<std::string>> parts;
  for (std::string& key : keys) parts[map.part_of(key)].push_back(std::move(key));
  std::vector<std::vector<std::string>> groups;
  for (auto& [part, group] : parts) groups.push_back(std::move(group));
  return groups;
}

void abandon(std::span<const KvPtr> operations) {
  for (const KvPtr& operation : operations) {
    if (operation) operation->abandon();
  }
  for (const KvPtr& operation : operations) {
    if (operation) operation->wait();
  }
}

Error another_incarnation(const KvOperation& operation) {
  const std::string& key = operation.keys.empty() ? operation.key : operation.keys.front();
  return {ErrorCode::kMismatch, "the server of '" + key + "' has restarted"};
}

KvPtr get_whole(std::string key) {
  auto operation = std::make_shared<KvOperation>();
  operation->kind = KvOperation::Kind::kGetWhole;
  operation->key = std::move(key);
  return operation;
}

Result<void> execute(KeyValue& map, const KvPtr& operation) {
  map.submit(operation);
  operation->wait();
  if (operation->error) return *operation->error;
  return {};
}

}  // namespace speedo
