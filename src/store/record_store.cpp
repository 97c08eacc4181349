#include <speedo/store/record_store.hpp>

#include <speedo/store/part_store.hpp>

#include <chrono>
#include <thread>

#include <speedo/base/assert.hpp>

#include "store/chunk_range.hpp"
#include "store/read_once.hpp"

namespace speedo {
namespace {

// Pauses between readings of a record that is overwritten or was lost: a writer needs a moment.
constexpr std::chrono::milliseconds kReopenPause{5};

Result<RecordInfo> try_get(RecordStore& store, std::string_view key, const Digest& model,
                           std::span<float> values, bool& overwritten) {
  SPEEDO_ASSIGN(const std::unique_ptr<RecordReader> reader, store.read(key));
  return take_record(*reader, key, model, values, &overwritten);
}

}  // namespace

Result<RecordInfo> take_record(RecordReader& reader, std::string_view key, const Digest& model,
                               std::span<float> values, bool* overwritten) {
  const RecordInfo& info = reader.info();
  if (info.model != model) {
    return Error{ErrorCode::kMismatch, "record '" + std::string(key) + "' is of model " +
                                           to_string(info.model) + ", expected " +
                                           to_string(model)};
  }
  if (info.element_count != values.size()) {
    return Error{ErrorCode::kMismatch, "record '" + std::string(key) + "' has " +
                                           std::to_string(info.element_count) +
                                           " floats, expected " + std::to_string(values.size())};
  }
  const std::size_t count = chunk_count(info.element_count);
  for (std::size_t chunk = 0; chunk < count; ++chunk) {
    reader.request(chunk, chunk_of(values, chunk));
  }
  for (std::size_t chunk = 0; chunk < count; ++chunk) {
    if (auto done = reader.wait(chunk); !done) {
      if (overwritten) *overwritten = done.error().code == ErrorCode::kNotFound;
      return done.error();
    }
  }
  return info;
}

void RecordWriter::write_encoded(std::size_t /*chunk*/, std::span<const std::byte> /*bytes*/) {
  SPEEDO_ASSERT(is_coded());
}

Result<void> put(RecordStore& store, std::string_view key, const RecordInfo& info,
                 std::span<const float> values) {
  RecordInfo complete = info;
  complete.element_count = values.size();
  const std::unique_ptr<RecordWriter> writer = store.write(key, complete);
  write_all(*writer, values);
  return writer->finish();
}

Result<RecordInfo> get(RecordStore& store, std::string_view key, const Digest& model,
                       std::span<float> values) {
  for (int attempt = 1;; ++attempt) {
    bool overwritten = false;
    auto info = try_get(store, key, model, values, overwritten);
    if (info || !overwritten || attempt >= kStoreAttemptsMax) return info;
    std::this_thread::sleep_for(kReopenPause * (attempt - 1));
  }
}

Result<RecordInfo> get_once(RecordStore& store, std::string_view key, const Digest& model,
                            std::span<float> values) {
  bool overwritten = false;
  return try_get(store, key, model, values, overwritten);
}

std::string weights_key() { return "weights"; }
std::string part_key(std::size_t part, std::string_view name) {
  return "part/" + std::to_string(part) + "/" + std::string(name);
}
std::string part_copy_key(std::size_t part, std::size_t parts, std::string_view name) {
  return part_key((part + 1) % parts, "of-" + std::to_string(part) + "/" + std::string(name));
}

std::string checkpoint_key() { return "checkpoint"; }
std::string contribution_key_prefix() { return "worker/"; }
std::string handout_key_prefix() { return "master/"; }
bool is_handed_over(std::string_view key) {
  return key.starts_with(contribution_key_prefix()) || key.starts_with(handout_key_prefix());
}
std::string contribution_key(std::uint64_t term, std::uint64_t worker) {
  return contribution_key_prefix() + std::to_string(term) + '/' + std::to_string(worker);
}
std::string local_key(std::uint64_t term, std::uint64_t worker) {
  return handout_key_prefix() + std::to_string(term) + '/' + std::to_string(worker) + "/local";
}

}  // namespace speedo
