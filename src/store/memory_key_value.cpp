#include "store/memory_key_value.hpp"

#include <algorithm>
#include <cstring>

#include "base/text_of.hpp"

namespace speedo {

void MemoryKeyValue::submit(KvPtr operation) {
  operation->server = incarnation_;
  operation->error.reset();
  if (!operation->may_be_done_by(operation->server)) {
    return operation->complete(another_incarnation(*operation));
  }
  switch (operation->kind) {
    case KvOperation::Kind::kSet:
      set(*operation);
      break;
    case KvOperation::Kind::kGetExact:
    case KvOperation::Kind::kGetWhole:
    case KvOperation::Kind::kGetStart:
      get(*operation);
      break;
    case KvOperation::Kind::kErase:
      erase(*operation);
      break;
    case KvOperation::Kind::kClaim:
      claim(*operation);
      break;
    case KvOperation::Kind::kRelease:
      release(*operation);
      break;
  }
  operation->complete(std::move(operation->error));
}

const MemoryEntry* MemoryKeyValue::find(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  if (found->second.end && *found->second.end <= clock_.now()) {
    entries_.erase(found);
    return nullptr;
  }
  return &found->second;
}

void MemoryKeyValue::store(const std::string& key, std::string bytes,
                           std::chrono::milliseconds lifetime) {
  MemoryEntry entry;
  entry.bytes = std::make_shared<const std::string>(std::move(bytes));
  if (lifetime.count() > 0) entry.end = clock_.now() + lifetime;
  entries_.insert_or_assign(key, std::move(entry));
}

MasterRecord MemoryKeyValue::record_of(const KvMaster& master) {
  MasterRecord record;
  if (const MemoryEntry* term = find(master.term_key)) record.term = *term->bytes;
  if (const MemoryEntry* lease = find(master.lease_key)) {
    record.lease = *lease->bytes;
    record.left = std::chrono::duration_cast<std::chrono::milliseconds>(
        lease->end.value_or(clock_.now()) - clock_.now());
  }
  if (const MemoryEntry* writer = find(master.writer_key)) record.writer = *writer->bytes;
  return record;
}

// Answers for the operation's master, and stores its term, and which writer it is, if the operation
// may take effect.
bool MemoryKeyValue::may_write(KvOperation& operation) {
  if (!operation.master) return true;
  const MasterAnswer answer = judge_write(*operation.master, record_of(*operation.master));
  operation.text = encode_answer(answer);
  if (answer.kind != MasterAnswer::Kind::kDone) return false;
  const KvMaster& master = *operation.master;
  store(master.term_key, encode_term(master.term), {});
  if (!master.writer_key.empty()) store(master.writer_key, encode_writer(master), {});
  return true;
}

void MemoryKeyValue::set(KvOperation& operation) {
  if (operation.make_head) operation.head = operation.make_head(operation.body);
  std::string value;
  value.reserve(operation.head.size() + operation.body.size());
  value.append(operation.head);
  value.append(text_of(operation.body));
  const std::lock_guard lock(mutex_);
  if (!may_write(operation)) return;
  store(operation.key, std::move(value), std::chrono::seconds(operation.expiry_seconds));
}

void MemoryKeyValue::erase(KvOperation& operation) {
  const std::lock_guard lock(mutex_);
  if (!may_write(operation)) return;
  for (const std::string& key : operation.keys) entries_.erase(key);
}

void MemoryKeyValue::claim(KvOperation& operation) {
  const KvMaster& master = *operation.master;
  const std::lock_guard lock(mutex_);
  const MasterAnswer answer = judge_claim(master, record_of(master));
  operation.text = encode_answer(answer);
  if (answer.kind != MasterAnswer::Kind::kDone) return;
  store(master.term_key, encode_term(master.term), {});
  store(master.lease_key, encode_lease(master.term, master.holder), master.time);
}

void MemoryKeyValue::release(KvOperation& operation) {
  const KvMaster& master = *operation.master;
  const std::lock_guard lock(mutex_);
  const MemoryEntry* lease = find(master.lease_key);
  if (lease != nullptr && *lease->bytes == encode_lease(master.term, master.holder)) {
    entries_.erase(master.lease_key);
  }
  operation.text = encode_answer({});
}

void MemoryKeyValue::get(KvOperation& operation) {
  std::shared_ptr<const std::string> value;
  {
    const std::lock_guard lock(mutex_);
    if (const MemoryEntry* entry = find(operation.key)) value = entry->bytes;
  }
  if (operation.kind == KvOperation::Kind::kGetStart) {
    operation.text = value ? value->substr(0, operation.start_bytes) : std::string();
    return;
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

MemoryImage MemoryKeyValue::image() const {
  const std::lock_guard lock(mutex_);
  return entries_;
}

void MemoryKeyValue::set_image(MemoryImage image) {
  const std::lock_guard lock(mutex_);
  entries_ = std::move(image);
  ++incarnation_;
}

Result<std::vector<std::string>> MemoryKeyValue::list(std::string_view prefix) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> keys;
  for (auto entry = entries_.lower_bound(prefix);
       entry != entries_.end() && entry->first.starts_with(prefix); ++entry) {
    keys.push_back(entry->first);
  }
  return keys;
}

}  // namespace speedo
