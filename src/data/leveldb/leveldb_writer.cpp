#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include "base/parse_number.hpp"
#include "data/dataset_writer.hpp"
#include "data/folder_target.hpp"

namespace speedo {

namespace {

constexpr std::size_t kWriteBatchBytes = std::size_t{4} << 20U;
constexpr std::size_t kWriteBufferBytes = std::size_t{64} << 20U;
constexpr std::size_t kTableBlockBytes = 65536;  // as in Caffe's databases

bool is_leveldb_file(const std::filesystem::path& file) {
  const std::string name = file.filename().string(), ending = file.extension().string();
  const bool is_numbered = parse_number<std::uint64_t>(file.stem().string()).has_value();
  return name == "CURRENT" || name == "LOCK" || name == "LOG" || name == "LOG.old" ||
         name.starts_with("MANIFEST-") ||
         (is_numbered && (ending == ".ldb" || ending == ".sst" || ending == ".log"));
}

class LeveldbWriter : public DatabaseWriter {
 public:
  LeveldbWriter(FolderTarget target, bool force) : target_(std::move(target)), force_(force) {}

  Result<void> open() {
    SPEEDO_ASSIGN(Temporary made, folder_beside(target_));
    temporary_.emplace(std::move(made));
    leveldb::Options options;
    options.create_if_missing = true;
    options.error_if_exists = true;
    options.write_buffer_size = kWriteBufferBytes;
    options.block_size = kTableBlockBytes;
    leveldb::DB* database = nullptr;
    SPEEDO_TRY(check(leveldb::DB::Open(options, temporary_->path().string(), &database)));
    database_.reset(database);
    return {};
  }

  Result<void> put(const std::string& key, std::string value) override {
    batch_.Put(key, value);
    return batch_.ApproximateSize() < kWriteBatchBytes ? Result<void>() : flush();
  }

  Result<void> commit() override {
    SPEEDO_TRY(flush());
    leveldb::WriteOptions options;
    options.sync = true;
    SPEEDO_TRY(check(database_->Write(options, &batch_)));
    database_.reset();
    return replace_target(target_, force_, *temporary_);
  }

 private:
  Result<void> check(const leveldb::Status& status) const {
    if (status.ok()) return {};
    return Error{ErrorCode::kCannotWrite, fmt::format("cannot write LevelDB '{}': {}",
                                                      target_.path.string(), status.ToString())};
  }

  Result<void> flush() {
    SPEEDO_TRY(check(database_->Write({}, &batch_)));
    batch_.Clear();
    return {};
  }

  FolderTarget target_;
  bool force_;
  std::optional<Temporary> temporary_;
  std::unique_ptr<leveldb::DB> database_;  // behind the temporary: closed before that is removed
  leveldb::WriteBatch batch_;
};

}  // namespace

Result<std::unique_ptr<DatabaseWriter>> make_leveldb_writer(const ConvertOptions& options) {
  FolderTarget target{named_folder(options.output), "a LevelDB", is_leveldb_file};
  SPEEDO_TRY(check_target(target, options.force));
  auto writer = std::make_unique<LeveldbWriter>(std::move(target), options.force);
  SPEEDO_TRY(writer->open());
  return std::unique_ptr<DatabaseWriter>(std::move(writer));
}

}  // namespace speedo
