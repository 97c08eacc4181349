#include <algorithm>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <lmdb.h>
#include <speedo/base/folder.hpp>
#include <speedo/base/temporary.hpp>

#include "caffe.pb.h"
#include "data/dataset_writer.hpp"
#include "data/datum.hpp"

namespace speedo {

namespace {

constexpr std::size_t kRecordsPerTransaction = 1000;  // as in Caffe's converters
constexpr std::size_t kFirstMapBytes = std::size_t{64} << 20U;

struct CloseEnvironment {
  void operator()(MDB_env* environment) const { mdb_env_close(environment); }
};
struct AbortTransaction {
  void operator()(MDB_txn* transaction) const { mdb_txn_abort(transaction); }
};
using Environment = std::unique_ptr<MDB_env, CloseEnvironment>;
using Transaction = std::unique_ptr<MDB_txn, AbortTransaction>;

MDB_val value_of(std::string& text) { return {text.size(), text.data()}; }

class LmdbWriter : public DatasetWriter {
 public:
  LmdbWriter(std::filesystem::path target, bool force)
      : target_(std::move(target)), force_(force) {}

  Result<void> open() {
    std::error_code code;
    auto temporary = Temporary::path_beside(target_, code);
    if (temporary) temporary_.emplace(std::move(*temporary));
    if (!temporary_ || !std::filesystem::create_directory(temporary_->path(), code)) {
      return Error{ErrorCode::kCannotWrite,
                   fmt::format("cannot create folder '{}': {}", target_.string(), code.message())};
    }
    MDB_env* environment = nullptr;
    SPEEDO_TRY(check(mdb_env_create(&environment)));
    environment_.reset(environment);
    SPEEDO_TRY(check(mdb_env_set_mapsize(environment, map_bytes_)));
    // Nobody else sees the folder before it is renamed: no lock file, and one sync at the end.
    constexpr unsigned kFlags = MDB_NOLOCK | MDB_NOSYNC;
    return check(mdb_env_open(environment, temporary_->path().c_str(), kFlags, 0644));
  }

  Result<void> add(const std::string& key, const Record& record) override {
    pending_.emplace_back(key, std::string());
    encode_datum(record, datum_, pending_.back().second);
    return pending_.size() < kRecordsPerTransaction ? Result<void>() : flush();
  }

  Result<void> commit() override {
    SPEEDO_TRY(flush());
    SPEEDO_TRY(check(mdb_env_sync(environment_.get(), 1)));
    environment_.reset();
    if (force_) SPEEDO_TRY(remove_old());
    return temporary_->put_in_place();
  }

 private:
  Result<void> check(int code) const {
    if (code == MDB_SUCCESS) return {};
    return Error{ErrorCode::kCannotWrite,
                 fmt::format("cannot write LMDB '{}': {}", target_.string(), mdb_strerror(code))};
  }

  // One transaction; a map that has become too small is doubled, and all is put again.
  Result<void> flush() {
    if (pending_.empty()) return {};
    int code = put_pending();
    while (code == MDB_MAP_FULL) {
      map_bytes_ *= 2;
      SPEEDO_TRY(check(mdb_env_set_mapsize(environment_.get(), map_bytes_)));
      code = put_pending();
    }
    pending_.clear();
    return check(code);
  }

  int put_pending() {
    MDB_txn* begun = nullptr;
    if (const int code = mdb_txn_begin(environment_.get(), nullptr, 0, &begun)) return code;
    Transaction transaction(begun);
    MDB_dbi database = 0;
    if (const int code = mdb_dbi_open(begun, nullptr, 0, &database)) return code;
    for (auto& [key, value] : pending_) {
      MDB_val key_value = value_of(key), data_value = value_of(value);
      if (const int code = mdb_put(begun, database, &key_value, &data_value, MDB_APPEND)) {
        return code;
      }
    }
    return mdb_txn_commit(transaction.release());
  }

  // Takes away a database, and only that: a folder with anything else in it stays.
  Result<void> remove_old() {
    std::error_code code;
    if (!std::filesystem::exists(target_, code)) return {};
    std::filesystem::remove(target_ / "data.mdb", code);
    std::filesystem::remove(target_ / "lock.mdb", code);
    if (std::filesystem::remove(target_, code)) return {};
    return Error{ErrorCode::kCannotWrite,
                 fmt::format("'{}' cannot be replaced: {}; remove it yourself", target_.string(),
                             code.message())};
  }

  std::filesystem::path target_;
  bool force_;
  std::optional<Temporary> temporary_;
  std::size_t map_bytes_ = kFirstMapBytes;
  Environment environment_;  // behind the temporary: closed before that is removed
  std::vector<std::pair<std::string, std::string>> pending_;
  caffe::Datum datum_;
};

// With force, the folder must be a database and nothing else, which is known before work begins.
Result<void> check_target(const std::filesystem::path& target, bool force) {
  std::error_code code;
  if (!std::filesystem::exists(target, code)) return {};
  if (!force) {
    return Error{ErrorCode::kCannotWrite,
                 fmt::format("'{}' exists already; remove it or use --force", target.string())};
  }
  bool only_lmdb = std::filesystem::is_directory(target, code);
  if (only_lmdb) {
    SPEEDO_ASSIGN(const std::vector<std::filesystem::path> files, list_folder(target));
    only_lmdb = std::all_of(files.begin(), files.end(),
                            [](const auto& file) { return file.extension() == ".mdb"; });
  }
  if (only_lmdb) return {};
  return Error{ErrorCode::kCannotWrite,
               fmt::format("'{}' is not an LMDB folder and is not replaced, even by force",
                           target.string())};
}

}  // namespace

Result<std::unique_ptr<DatasetWriter>> make_lmdb_writer(const ConvertOptions& options) {
  SPEEDO_TRY(check_target(options.output, options.force));
  auto writer = std::make_unique<LmdbWriter>(options.output, options.force);
  SPEEDO_TRY(writer->open());
  return std::unique_ptr<DatasetWriter>(std::move(writer));
}

}  // namespace speedo
