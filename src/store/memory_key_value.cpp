#include "store/memory_key_value.hpp"

#include <algorithm>
#include <cstring>

namespace speedo {

Result<void> execute(KeyValue& map, const KvPtr& operation) {
  map.submit(operation);
  operation->wait();
  if (operation->error) return *operation->error;
  return {};
}

void MemoryKeyValue::submit(KvPtr operation) {
  operation->server = 1;
  switch (operation->kind) {
    case KvOperation::Kind::kSet:
      set(*operation);
      break;
    case KvOperation::Kind::kGetExact:
    case KvOperation::Kind::kGetWhole:
      get(*operation);
      break;
    case KvOperation::Kind::kErase: {
      const std::lock_guard lock(mutex_);
      for (const std::string& key : operation->keys) values_.erase(key);
      break;
    }
  }
  operation->complete(std::move(operation->error));
}

void MemoryKeyValue::set(KvOperation& operation) {
  if (operation.make_head) operation.head = operation.make_head(operation.body);
  std::string value;
  value.reserve(operation.head.size() + operation.body.size());
  value.append(operation.head);
  value.append(reinterpret_cast<const char*>(operation.body.data()), operation.body.size());
  auto shared = std::make_shared<const std::string>(std::move(value));
  const std::lock_guard lock(mutex_);
  values_.insert_or_assign(operation.key, std::move(shared));
}

void MemoryKeyValue::get(KvOperation& operation) {
  Value value;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = values_.find(operation.key); found != values_.end()) {
      value = found->second;
    }
  }
  if (!value) {
    operation.error = Error{ErrorCode::kNotFound, "no key '" + operation.key + "'"};
    return;
  }
  if (operation.kind == KvOperation::Kind::kGetWhole) {
    operation.text = *value;
    return;
  }
  const std::size_t head_bytes = std::min(operation.head.size(), value->size());
  std::memcpy(operation.head.data(), value->data(), head_bytes);
  if (value->size() != operation.head.size() + operation.target.size()) {
    operation.head.resize(head_bytes);
    operation.error = Error{ErrorCode::kCorrupt, "key '" + operation.key + "' has " +
                                                     std::to_string(value->size()) + " bytes"};
    return;
  }
  std::memcpy(operation.target.data(), value->data() + head_bytes, operation.target.size());
}

Result<void> MemoryKeyValue::erase_all(std::string_view prefix) {
  const std::lock_guard lock(mutex_);
  auto first = values_.lower_bound(prefix);
  while (first != values_.end() && first->first.starts_with(prefix)) first = values_.erase(first);
  return {};
}

}  // namespace speedo
