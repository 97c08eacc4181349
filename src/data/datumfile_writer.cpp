#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <fmt/format.h>
#include <speedo/base/limits.hpp>

#include "caffe.pb.h"
#include "data/atomic_file.hpp"
#include "data/datum.hpp"
#include "data/record_writer.hpp"

namespace speedo {

namespace {

void append_little32(std::string& text, std::size_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    text.push_back(static_cast<char>(value >> shift & 0xFFU));
  }
}

class DatumfileWriter : public RecordWriter {
 public:
  explicit DatumfileWriter(std::filesystem::path target)
      : target_(std::move(target)),
        temporary_(temporary_beside(target_)),
        stream_(temporary_, std::ios::binary) {}

  ~DatumfileWriter() override {
    stream_.close();
    std::error_code code;
    if (!committed_) std::filesystem::remove(temporary_, code);
  }

  bool is_open() const { return stream_.is_open(); }

  Result<void> add(const std::string& key, const Record& record) override {
    encode_datum(record, datum_, value_);
    if (value_.size() + key.size() + 8 > kDatumfileRecordBytesMax) {
      return Error{ErrorCode::kCannotWrite,
                   fmt::format("record {} has {} bytes, a datumfile takes {} at most", key,
                               value_.size(), kDatumfileRecordBytesMax)};
    }
    std::string bytes;
    append_little32(bytes, key.size() + value_.size() + 8);
    append_little32(bytes, key.size());
    bytes += key;
    append_little32(bytes, value_.size());
    bytes += value_;
    stream_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return check();
  }

  Result<void> commit() override {
    stream_.close();
    SPEEDO_TRY(check());
    committed_ = true;
    return put_in_place(temporary_, target_);
  }

 private:
  Result<void> check() const {
    if (stream_.good()) return {};
    return Error{ErrorCode::kCannotWrite,
                 fmt::format("cannot write '{}': {}", target_.string(), std::strerror(errno))};
  }

  std::filesystem::path target_, temporary_;
  std::ofstream stream_;
  bool committed_ = false;
  caffe::Datum datum_;
  std::string value_;
};

}  // namespace

Result<std::unique_ptr<RecordWriter>> make_datumfile_writer(const ConvertOptions& options) {
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
  auto writer = std::make_unique<DatumfileWriter>(options.output);
  if (!writer->is_open()) {
    return Error{
        ErrorCode::kCannotWrite,
        fmt::format("cannot write '{}': {}", options.output.string(), std::strerror(errno))};
  }
  return std::unique_ptr<RecordWriter>(std::move(writer));
}

}  // namespace speedo
