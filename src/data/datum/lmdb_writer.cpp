#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <lmdb.h>

#include "data/dataset_writer.hpp"
#include "data/folder_target.hpp"

namespace speedo {

namespace {

constexpr std::size_t kRecordsPerTransaction = 1000;  // as in Caffe's converters
constexpr std::size_t kBytesPerTransaction = std::size_t{64} << 20U;  // it lies in memory
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

class LmdbWriter : public DatabaseWriter {
 public:
  LmdbWriter(FolderTarget target, bool force) : target_(std::move(target)), force_(force) {}

  Result<void> open() {
    SPEEDO_ASSIGN(Temporary made, folder_beside(target_));
    temporary_.emplace(std::move(made));
    std::error_code code;
    if (!std::filesystem::create_directory(temporary_->path(), code)) {
      return Error{ErrorCode::kCannotWrite, fmt::format("cannot create folder '{}': {}",
                                                        target_.path.string(), code.message())};
    }
    MDB_env* environment = nullptr;
    SPEEDO_TRY(check(mdb_env_create(&environment)));
    environment_.reset(environment);
    SPEEDO_TRY(check(mdb_env_set_mapsize(environment, map_bytes_)));
    // Nobody else sees the folder before it is renamed: no lock file, and one sync at the end.
    constexpr unsigned kFlags = MDB_NOLOCK | MDB_NOSYNC;
    return check(mdb_env_open(environment, temporary_->path().c_str(), kFlags, 0644));
  }

  Result<void> put(const std::string& key, std::string value) override {
    const auto most = static_cast<std::size_t>(mdb_env_get_maxkeysize(environment_.get()));
    if (key.size() > most) {
      return Error{ErrorCode::kCannotWrite,
                   fmt::format("key '{}...' has {} bytes, an LMDB takes {} at most: shorten it, or "
                               "choose another backend",
                               key.substr(0, 64), key.size(), most)};
    }
    pending_bytes_ += value.size();
    pending_.emplace_back(key, std::move(value));
    const bool is_full =
        pending_.size() >= kRecordsPerTransaction || pending_bytes_ >= kBytesPerTransaction;
    return is_full ? flush() : Result<void>();
  }

  Result<void> commit() override {
    SPEEDO_TRY(flush());
    SPEEDO_TRY(check(mdb_env_sync(environment_.get(), 1)));
    environment_.reset();
    return replace_target(target_, force_, *temporary_);
  }

 private:
  Result<void> check(int code) const {
    if (code == MDB_SUCCESS) return {};
    // A page that the disk has no room for is written in part, which LMDB calls by this name.
    const char* const hint = code == EIO ? ": is the disk full?" : "";
    return Error{ErrorCode::kCannotWrite,
                 fmt::format("cannot write LMDB '{}': {}{}", target_.path.string(),
                             mdb_strerror(code), hint)};
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
    pending_bytes_ = 0;
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

  FolderTarget target_;
  bool force_;
  std::optional<Temporary> temporary_;
  std::size_t map_bytes_ = kFirstMapBytes;
  Environment environment_;  // behind the temporary: closed before that is removed
  std::vector<std::pair<std::string, std::string>> pending_;
  std::size_t pending_bytes_ = 0;  // of the values
};

bool is_lmdb_file(const std::filesystem::path& file) {
  return file.filename() == "data.mdb" || file.filename() == "lock.mdb";
}

}  // namespace

Result<std::unique_ptr<DatabaseWriter>> make_lmdb_writer(const ConvertOptions& options) {
  FolderTarget target{named_folder(options.output), "an LMDB", is_lmdb_file};
  SPEEDO_TRY(check_target(target, options.force));
  auto writer = std::make_unique<LmdbWriter>(std::move(target), options.force);
  SPEEDO_TRY(writer->open());
  return std::unique_ptr<DatabaseWriter>(std::move(writer));
}

}  // namespace speedo
