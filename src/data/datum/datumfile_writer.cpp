#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <fmt/format.h>
#include <speedo/base/folder.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/base/temporary.hpp>

#include "data/dataset_writer.hpp"

namespace speedo {

namespace {

void append_little32(std::string& text, std::size_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    text.push_back(static_cast<char>(value >> shift & 0xFFU));
  }
}

class DatumfileWriter : public DatabaseWriter {
 public:
  DatumfileWriter(std::filesystem::path target, Temporary temporary)
      : target_(std::move(target)),
        temporary_(std::move(temporary)),
        stream_(temporary_.path(), std::ios::binary) {}

  Result<void> put(const std::string& key, std::string value) override {
    if (value.size() + key.size() + 8 > kDatumfileRecordBytesMax) {
      return Error{ErrorCode::kCannotWrite,
                   fmt::format("record {} has {} bytes, a datumfile takes {} at most", key,
                               value.size(), kDatumfileRecordBytesMax)};
    }
    std::string bytes;
    append_little32(bytes, key.size() + value.size() + 8);
    append_little32(bytes, key.size());
    bytes += key;
    append_little32(bytes, value.size());
    bytes += value;
    stream_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return check();
  }

  Result<void> commit() override {
    stream_.close();
    SPEEDO_TRY(check());
    return temporary_.put_in_place();
  }

 private:
  Result<void> check() const {
    if (stream_.good()) return {};
    return Error{ErrorCode::kCannotWrite,
                 fmt::format("cannot write '{}': {}", target_.string(), std::strerror(errno))};
  }

  std::filesystem::path target_;
  Temporary temporary_;
  std::ofstream stream_;
};

}  // namespace

Result<std::unique_ptr<DatabaseWriter>> make_datumfile_writer(const ConvertOptions& options) {
  std::error_code code;
  if (std::filesystem::is_directory(options.output, code)) {
    return Error{ErrorCode::kCannotWrite,
                 fmt::format("'{}' is a folder; a datumfile is a file", options.output.string())};
  }
  if (std::filesystem::exists(options.output, code) && !options.force) {
    return Error{
        ErrorCode::kCannotWrite,
        fmt::format("'{}' exists already; remove it or use --force", options.output.string())};
  }
  const std::filesystem::path target = behind_links(options.output);
  auto temporary = Temporary::path_beside(target, code);
  if (!temporary) {
    return Error{ErrorCode::kCannotWrite,
                 fmt::format("cannot write '{}': {}", options.output.string(), code.message())};
  }
  return std::unique_ptr<DatabaseWriter>(
      std::make_unique<DatumfileWriter>(target, std::move(*temporary)));
}

}  // namespace speedo
