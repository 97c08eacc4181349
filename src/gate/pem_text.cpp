#include "gate/pem_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/byte_order_mark.hpp"
#include "base/descriptor.hpp"

namespace speedo {
namespace {

// All authorities that a system knows take less than a megabyte.
constexpr std::size_t kPemBytesMax = std::size_t{64} << 20U;
constexpr std::string_view kBegin = "-----BEGIN ";
constexpr std::string_view kEnd = "-----END ";
constexpr std::string_view kDashes = "-----";
// The lines of a block have 64 letters, or 76, all but its last one; no comment looks like that.
constexpr std::size_t kBlockLettersMin = 60;

// Each next line of a text, with its place; ends of lines and blanks before them are left out.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}

  bool next() {
    if (end_ >= text_.size()) return false;
    begin_ = end_;
    const std::size_t found = text_.find('\n', begin_);
    end_ = found == std::string_view::npos ? text_.size() : found + 1;
    number_ += 1;
    line_ = text_.substr(begin_, end_ - begin_);
    line_ = line_.substr(0, line_.find_last_not_of(" \t\r\n") + 1);
    return true;
  }
  std::string_view line() const { return line_; }
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return end_; }
  std::size_t number() const { return number_; }

 private:
  std::string_view text_, line_;
  std::size_t begin_ = 0, end_ = 0, number_ = 0;
};

Error damaged(std::size_t line, std::string_view what) {
  return {ErrorCode::kConfig, fmt::format("line {}: {}", line, what)};
}

bool is_of_block(std::string_view line) {
  if (line.find(kBegin) != std::string_view::npos) return true;
  if (line.find(kEnd) != std::string_view::npos) return true;
  return line.size() >= kBlockLettersMin && std::all_of(line.begin(), line.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '/';
         });
}

bool decode(std::string_view text, PemBlock& block) {
  const std::unique_ptr<BIO, decltype(&::BIO_free_all)> memory(
      ::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), ::BIO_free_all);
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* bytes = nullptr;
  long size = 0;
  const bool read = ::PEM_read_bio(memory.get(), &name, &header, &bytes, &size) == 1;
  if (read) {
    block.kind = name;
    block.bytes.assign(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }
  ::OPENSSL_free(name);
  ::OPENSSL_free(header);
  ::OPENSSL_free(bytes);
  ::ERR_clear_error();
  return read;
}

// `lines` stands at the line of `begin`, its BEGIN, and then at its END.
Result<PemBlock> read_block(std::string_view text, std::size_t begin, Lines& lines) {
  const std::size_t number = lines.number();
  PemBlock block{.kind = {}, .bytes = {}, .begin = begin, .end = 0};
  while (lines.next()) {
    if (lines.line().starts_with(kBegin)) break;
    if (!lines.line().starts_with(kEnd)) continue;
    block.end = lines.end();
    if (decode(text.substr(block.begin, block.end - block.begin), block)) return block;
    return damaged(number, "the block that begins here is damaged");
  }
  return damaged(number, "the block that begins here has no end");
}

Error unreadable(const std::filesystem::path& path, int reason) {
  const bool missing = reason == ENOENT || reason == ENOTDIR;
  const bool refused = reason == EACCES || reason == EPERM;
  return {missing   ? ErrorCode::kNotFound
          : refused ? ErrorCode::kRefused
                    : ErrorCode::kConfig,
          fmt::format("'{}' cannot be read: {}", path.string(), std::strerror(reason))};
}

}  // namespace

Result<std::string> read_pem_file(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return unreadable(path, errno);
  std::string text;
  std::array<char, 16384> piece{};
  while (text.size() <= kPemBytesMax) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got == 0) return text;
    if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) return unreadable(path, errno);
  }
  return unreadable(path, EFBIG);
}

Result<std::vector<PemBlock>> pem_blocks(std::string_view text) {
  std::vector<PemBlock> blocks;
  Lines lines(text);
  while (lines.next()) {
    std::string_view line = lines.line();
    std::size_t begin = lines.begin();
    if (begin == 0 && line.starts_with(kByteOrderMark)) {
      line.remove_prefix(kByteOrderMark.size());
      begin = kByteOrderMark.size();
    }
    if (line.starts_with(kBegin) && line.ends_with(kDashes)) {
      SPEEDO_ASSIGN(PemBlock block, read_block(text, begin, lines));
      blocks.push_back(std::move(block));
    } else if (is_of_block(line)) {
      return damaged(lines.number(), "what is left of a damaged block");
    }
  }
  return blocks;
}

}  // namespace speedo
