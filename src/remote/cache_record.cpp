// record := "speedo-file 1" "uri" SHOWN "key" KEY "version" VERSION "bytes" N "changed" NS
//           "sha256" HEX                                  each on a line of its own

#include "remote/cache_record.hpp"

#include <sstream>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/open_file.hpp"
#include "base/parse_number.hpp"

namespace speedo {

namespace {

constexpr std::size_t kRecordBytesMax = 65536;

// The rest of the next line, which must begin with `name`.
std::optional<std::string> field(std::istringstream& lines, const std::string& name) {
  std::string line;
  if (!std::getline(lines, line) || !line.starts_with(name + " ")) return std::nullopt;
  return line.substr(name.size() + 1);
}

}  // namespace

std::string to_text(const CacheRecord& record) {
  return fmt::format("speedo-file 1\nuri {}\nkey {}\nversion {}\nbytes {}\nchanged {}\nsha256 {}\n",
                     record.shown, record.key, record.version, record.bytes, record.changed_ns,
                     record.sha256);
}

std::optional<CacheRecord> read_cache_record(const std::filesystem::path& path) {
  const auto text = read_unconfined_file(path, kRecordBytesMax);
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  const auto form = field(lines, "speedo-file"), uri = field(lines, "uri"),
             key = field(lines, "key"), version = field(lines, "version"),
             bytes = field(lines, "bytes"), changed = field(lines, "changed"),
             sha256 = field(lines, "sha256");
  if (form != "1" || !uri || !key || !version || !sha256 || !bytes || !changed) {
    return std::nullopt;
  }
  const auto count = parse_number<std::uint64_t>(*bytes);
  const auto time = parse_number<std::int64_t>(*changed);
  if (!count || !time) return std::nullopt;
  return CacheRecord{*uri, *key, *version, *count, *time, *sha256};
}

std::optional<FileStamp> stamp_of(const std::filesystem::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  constexpr std::int64_t kSecond = 1000000000;
  constexpr std::uint64_t kBlockBytes = 512;  // of st_blocks, whatever those of the disk are
  return FileStamp{static_cast<std::uint64_t>(status.st_size),
                   status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec,
                   static_cast<std::uint64_t>(status.st_blocks) * kBlockBytes};
}

bool is_file_of(const FileStamp& stamp, const CacheRecord& record) {
  return stamp.bytes == record.bytes && stamp.changed_ns == record.changed_ns;
}

}  // namespace speedo
