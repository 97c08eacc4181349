#include "store/shared/shared_store.hpp"

#include <utility>

#include "store/shared/in_place_reader.hpp"
#include "store/shared/in_place_writer.hpp"

namespace speedo {
namespace {

template <class T>
void put_or_erase(std::map<std::string, std::shared_ptr<T>, std::less<>>& map,
                  std::string_view key, std::shared_ptr<T> value) {
  if (value) {
    map.insert_or_assign(std::string(key), std::move(value));
  } else if (const auto found = map.find(key); found != map.end()) {
    map.erase(found);
  }
}

template <class T>
std::shared_ptr<T> value_or_null(
    const std::map<std::string, std::shared_ptr<T>, std::less<>>& map, std::string_view key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : found->second;
}

}  // namespace

void SharedStore::write_in(std::string_view key, std::shared_ptr<RecordMemory> memory) {
  const std::lock_guard lock(mutex_);
  put_or_erase(written_, key, std::move(memory));
}

void SharedStore::read_from(std::string_view key, std::shared_ptr<const SharedRecord> record) {
  const std::lock_guard lock(mutex_);
  put_or_erase(read_, key, std::move(record));
}

std::shared_ptr<RecordMemory> SharedStore::memory_of(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  return value_or_null(written_, key);
}

std::shared_ptr<const SharedRecord> SharedStore::record_of(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  return value_or_null(read_, key);
}

std::unique_ptr<RecordWriter> SharedStore::write(std::string_view key, const RecordInfo& info) {
  auto memory = memory_of(key);
  const bool fits = memory && memory->shape().element_count == info.element_count &&
                    memory->shape().model == info.model;
  if (!fits) return base_->write(key, info);
  RecordInfo plain = info;
  plain.codec = CodecKind::kNone;
  return std::make_unique<InPlaceWriter>(std::move(memory), plain,
                                         copies_ ? base_->write(key, plain) : nullptr);
}

std::unique_ptr<RecordReader> SharedStore::read_in_place(std::string_view key) const {
  auto record = record_of(key);
  const auto newest = record ? record->newest() : std::nullopt;
  if (!newest) return nullptr;
  return std::make_unique<InPlaceReader>(std::string(key), std::move(record), *newest);
}

Result<std::unique_ptr<RecordReader>> SharedStore::read(std::string_view key) {
  if (auto reader = read_in_place(key)) return reader;
  return base_->read(key);
}

std::vector<Result<std::unique_ptr<RecordReader>>> SharedStore::read_all(
    std::span<const std::string> keys) {
  std::vector<std::unique_ptr<RecordReader>> in_place;
  std::vector<std::string> others;
  for (const std::string& key : keys) {
    in_place.push_back(read_in_place(key));
    if (!in_place.back()) others.push_back(key);
  }
  auto from_base = others.empty() ? decltype(base_->read_all(others)){} : base_->read_all(others);
  std::vector<Result<std::unique_ptr<RecordReader>>> readers;
  std::size_t next = 0;
  for (auto& reader : in_place) {
    readers.push_back(reader ? Result<std::unique_ptr<RecordReader>>(std::move(reader))
                             : std::move(from_base[next++]));
  }
  return readers;
}

std::unique_ptr<AheadReader> SharedStore::read_ahead(std::string_view key,
                                                     const AheadRecord& record) {
  auto shared = record_of(key);
  if (!shared || shared->shape().element_count != record.element_count) {
    return base_->read_ahead(key, record);
  }
  return std::make_unique<InPlaceAheadReader>(std::string(key), std::move(shared), record);
}

Result<void> SharedStore::erase(std::string_view key, std::uint64_t element_count) {
  read_from(key, nullptr);
  return base_->erase(key, element_count);
}

}  // namespace speedo
