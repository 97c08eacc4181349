#include "store/chunked_store.hpp"

#include <speedo/base/assert.hpp>
#include <speedo/store/layout.hpp>
#include <speedo/store/memory_store.hpp>

#include "store/chunk_reader.hpp"
#include "store/chunk_writer.hpp"
#include "store/memory_key_value.hpp"

namespace speedo {
namespace {

KvPtr get_whole(std::string key) {
  auto operation = std::make_shared<KvOperation>();
  operation->kind = KvOperation::Kind::kGetWhole;
  operation->key = std::move(key);
  return operation;
}

}  // namespace

Result<void> check_job_name(const std::string& job) {
  constexpr const char* kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  constexpr std::size_t kJobNameMax = 100;
  if (job.empty() || job.size() > kJobNameMax ||
      job.find_first_not_of(kAllowed) != std::string::npos) {
    return Error{ErrorCode::kUsage, "job name '" + job.substr(0, kJobNameMax) +
                                        "': use 1 to 100 letters, digits, '-', '_' and '.'"};
  }
  return {};
}

std::shared_ptr<ParameterStore> make_memory_store(const std::string& job) {
  return std::make_shared<ChunkedStore>(std::make_shared<MemoryKeyValue>(), job);
}

RecordPolicy policy_of(std::string_view key) {
  if (key == weights_key()) return {kRecordSlots, 0};
  if (key.starts_with(contribution_key_prefix())) {
    return {kContributionSlots, kContributionExpirySeconds};
  }
  return {kRecordSlots, 0};
}

Result<RecordManifest> read_manifest(StoreShared& shared, std::string_view key) {
  const KvPtr operation = get_whole(RecordKeys(shared.job, key).manifest());
  if (auto done = execute(*shared.map, operation); !done) {
    if (done.error().code != ErrorCode::kNotFound) return done.error();
    return Error{ErrorCode::kNotFound,
                 "job '" + shared.job + "' has no record '" + std::string(key) + "' in the store"};
  }
  auto manifest = decode_manifest(operation->text);
  if (!manifest) {
    return Error{ErrorCode::kCorrupt, "manifest of record '" + std::string(key) + "' of job '" +
                                          shared.job + "' " + manifest.error().message};
  }
  return manifest;
}

ChunkedStore::ChunkedStore(std::shared_ptr<KeyValue> map, std::string job)
    : shared_(std::make_shared<StoreShared>(std::move(map), std::move(job))) {
  SPEEDO_ASSERT(check_job_name(shared_->job).has_value());
}

std::unique_ptr<RecordWriter> ChunkedStore::write(std::string_view key, const RecordInfo& info) {
  return std::make_unique<ChunkWriter>(shared_, key, info);
}

Result<std::unique_ptr<RecordReader>> ChunkedStore::read(std::string_view key) {
  SPEEDO_ASSIGN(RecordManifest manifest, read_manifest(*shared_, key));
  return std::unique_ptr<RecordReader>(
      std::make_unique<ChunkReader>(shared_, key, std::move(manifest)));
}

Result<void> ChunkedStore::put_blob(std::string_view key, std::string_view value) {
  if (value.size() > kBlobBytesMax - kFrameHeadBytes) {
    return Error{ErrorCode::kFull, "blob '" + std::string(key) + "' has " +
                                       std::to_string(value.size()) + " bytes, the most is " +
                                       std::to_string(kBlobBytesMax - kFrameHeadBytes)};
  }
  auto operation = std::make_shared<KvOperation>();
  operation->kind = KvOperation::Kind::kSet;
  operation->key = RecordKeys(shared_->job, key).blob();
  operation->head = encode_blob_head(value);
  operation->body = std::as_bytes(std::span(value.data(), value.size()));
  return execute(*shared_->map, operation);
}

Result<std::string> ChunkedStore::get_blob(std::string_view key) {
  const KvPtr operation = get_whole(RecordKeys(shared_->job, key).blob());
  if (auto done = execute(*shared_->map, operation); !done) {
    if (done.error().code != ErrorCode::kNotFound) return done.error();
    return Error{ErrorCode::kNotFound,
                 "job '" + shared_->job + "' has no blob '" + std::string(key) + "' in the store"};
  }
  const auto value = decode_blob(operation->text);
  if (!value) {
    return Error{ErrorCode::kCorrupt, "blob '" + std::string(key) + "' of job '" + shared_->job +
                                          "' " + value.error().message};
  }
  return std::string(*value);
}

Result<void> ChunkedStore::erase(std::string_view key) {
  const RecordKeys names(shared_->job, key);
  auto manifest = read_manifest(*shared_, key);
  if (!manifest && is_transient(manifest.error().code)) return manifest.error();
  auto operation = std::make_shared<KvOperation>();
  operation->kind = KvOperation::Kind::kErase;
  operation->keys = {names.manifest(), names.blob()};
  if (manifest) {
    for (std::uint32_t slot = 0; slot < policy_of(key).slots; ++slot) {
      for (std::size_t chunk = 0; chunk < manifest->checksums.size(); ++chunk) {
        operation->keys.push_back(names.chunk(slot, chunk));
      }
    }
  }
  {
    const std::lock_guard lock(shared_->mutex);
    if (const auto found = shared_->last_slots.find(key); found != shared_->last_slots.end()) {
      shared_->last_slots.erase(found);
    }
  }
  return execute(*shared_->map, operation);
}

Result<void> ChunkedStore::clear() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->last_slots.clear();
  }
  return shared_->map->erase_all(job_prefix(shared_->job));
}

}  // namespace speedo
