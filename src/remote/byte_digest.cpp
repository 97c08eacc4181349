#include "remote/byte_digest.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <speedo/base/assert.hpp>

namespace speedo {

namespace {

const EVP_MD* algorithm_of(DigestKind kind) {
  if (kind == DigestKind::kMd5) return EVP_md5();
  return kind == DigestKind::kSha1 ? EVP_sha1() : EVP_sha256();
}

std::string digest_hex(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

struct ByteDigest::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

std::string_view name_of(DigestKind kind) {
  if (kind == DigestKind::kMd5) return "MD5";
  return kind == DigestKind::kSha1 ? "SHA-1" : "SHA-256";
}

ByteDigest::ByteDigest(DigestKind kind) : state_(std::make_unique<State>()) {
  SPEEDO_ASSERT(state_->context != nullptr);
  const int begun = EVP_DigestInit_ex(state_->context, algorithm_of(kind), nullptr);
  SPEEDO_ASSERT(begun == 1);
}

ByteDigest::~ByteDigest() = default;
ByteDigest::ByteDigest(ByteDigest&&) noexcept = default;

void ByteDigest::add(std::span<const std::byte> bytes) {
  const int added = EVP_DigestUpdate(state_->context, bytes.data(), bytes.size());
  SPEEDO_ASSERT(added == 1);
}

std::string ByteDigest::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  const int finished = EVP_DigestFinal_ex(state_->context, digest.data(), &size);
  SPEEDO_ASSERT(finished == 1);
  return digest_hex(std::span(digest).first(size));
}

Result<std::string> digest_of_file(int descriptor, std::uint64_t bytes, DigestKind kind) {
  constexpr std::size_t kBlockBytes = std::size_t{1} << 20U;
  std::vector<std::byte> block(kBlockBytes);
  ByteDigest digest(kind);
  for (std::uint64_t offset = 0; offset < bytes;) {
    const auto wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, bytes - offset));
    const ssize_t got = ::pread(descriptor, block.data(), wanted, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return Error{ErrorCode::kData, fmt::format("cannot be read at byte {}: {}", offset,
                                                 got < 0 ? std::strerror(errno) : "it ends")};
    }
    digest.add(std::span(block).first(static_cast<std::size_t>(got)));
    offset += static_cast<std::uint64_t>(got);
  }
  return digest.finish();
}

std::optional<std::string> digest_in_base64(DigestKind kind, std::string_view text) {
  constexpr std::size_t kTextBytesMax = 128;
  if (text.empty() || text.size() > kTextBytesMax || text.size() % 4 != 0) return std::nullopt;
  std::array<unsigned char, kTextBytesMax> bytes;
  const int decoded =
      EVP_DecodeBlock(bytes.data(), reinterpret_cast<const unsigned char*>(text.data()),
                      static_cast<int>(text.size()));
  // It counts the padding as bytes.
  const auto padding = static_cast<int>(std::count(text.end() - 2, text.end(), '='));
  if (decoded < 0 || decoded - padding != EVP_MD_get_size(algorithm_of(kind))) return std::nullopt;
  return digest_hex(std::span(bytes).first(static_cast<std::size_t>(decoded - padding)));
}

}  // namespace speedo
