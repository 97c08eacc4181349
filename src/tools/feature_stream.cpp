#include "tools/feature_stream.hpp"

#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "data/dataset_writer.hpp"

namespace speedo {

namespace {

constexpr std::string_view kStreamMagic = "SPDFEAT1";
constexpr std::uint32_t kEndOfRecords = 0xffffffff;
static_assert(std::endian::native == std::endian::little);

Result<void> write_bytes(std::FILE* stream, const void* bytes, std::size_t size) {
  if (std::fwrite(bytes, 1, size, stream) == size) return {};
  return Error{ErrorCode::kCannotWrite,
               std::string("cannot write features to standard output: ") + std::strerror(errno)};
}

class StreamWriter : public DatabaseWriter {
 public:
  StreamWriter(std::FILE* stream, std::uint32_t blob, std::uint64_t& records)
      : stream_(stream), blob_(blob), records_(records) {}

  Result<void> put(const std::string& /*key*/, std::string value) override {
    const std::uint32_t head[] = {blob_, static_cast<std::uint32_t>(value.size())};
    SPEEDO_TRY(write_bytes(stream_, head, sizeof(head)));
    SPEEDO_TRY(write_bytes(stream_, value.data(), value.size()));
    ++records_;
    return {};
  }
  Result<void> commit() override { return {}; }

 private:
  std::FILE* const stream_;
  const std::uint32_t blob_;
  std::uint64_t& records_;
};

template <class Value>
bool read_value(std::istream& stream, Value& value) {
  return static_cast<bool>(stream.read(reinterpret_cast<char*>(&value), sizeof(value)));
}

// Goes over the records; without `take` it reads none of their bytes.
Result<void> walk(const std::filesystem::path& path, const TakeFeature& take) {
  const auto broken = [&](const char* what) {
    return Error{ErrorCode::kCorrupt, fmt::format("the features in '{}' {}", path.string(), what)};
  };
  std::ifstream stream(path, std::ios::binary);
  std::error_code code;
  const std::uintmax_t size = std::filesystem::file_size(path, code);
  std::string magic(kStreamMagic.size(), '\0');
  if (code || !stream.read(magic.data(), static_cast<std::streamsize>(magic.size())) ||
      magic != kStreamMagic) {
    return broken("do not begin as such");
  }
  std::uint64_t records = 0;
  std::uint32_t blob = 0, bytes = 0;
  while (read_value(stream, blob) && blob != kEndOfRecords) {
    if (!read_value(stream, bytes)) return broken("end within a record");
    const auto at = static_cast<std::uintmax_t>(stream.tellg());
    if (bytes > size - at) return broken("end within a record");
    ++records;
    if (!take) {
      stream.seekg(bytes, std::ios::cur);
      continue;
    }
    std::string datum(bytes, '\0');
    if (!stream.read(datum.data(), bytes)) return broken("end within a record");
    SPEEDO_TRY(take(blob, std::move(datum)));
  }
  std::uint64_t announced = 0;
  if (!stream || !read_value(stream, announced)) return broken("have no end");
  if (announced != records) return broken("are not as many as were written");
  return {};
}

}  // namespace

Result<void> begin_feature_stream(std::FILE* stream) {
  return write_bytes(stream, kStreamMagic.data(), kStreamMagic.size());
}

std::unique_ptr<DatabaseWriter> make_stream_writer(std::FILE* stream, std::uint32_t blob,
                                                   std::uint64_t& records) {
  return std::make_unique<StreamWriter>(stream, blob, records);
}

Result<void> end_feature_stream(std::FILE* stream, std::uint64_t records) {
  SPEEDO_TRY(write_bytes(stream, &kEndOfRecords, sizeof(kEndOfRecords)));
  SPEEDO_TRY(write_bytes(stream, &records, sizeof(records)));
  if (std::fflush(stream) == 0) return {};
  return Error{ErrorCode::kCannotWrite,
               std::string("cannot write features to standard output: ") + std::strerror(errno)};
}

Result<void> read_feature_stream(const std::filesystem::path& path, const TakeFeature& take) {
  SPEEDO_TRY(walk(path, {}));
  return walk(path, take);
}

}  // namespace speedo
