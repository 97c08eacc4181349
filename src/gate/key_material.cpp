#include "gate/key_material.hpp"

#include <memory>
#include <new>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <speedo/base/assert.hpp>

namespace speedo {
namespace {

unsigned char* key_bytes(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

const unsigned char* key_bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

OSSL_PARAM octets(const char* name, std::string_view text) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(text.data()), text.size());
}

// Nothing but a lack of memory is in the way of these: the program ends as a `new` that fails does.
void need(bool done) {
  if (const auto handler = std::get_new_handler(); !done && handler != nullptr) handler();
  SPEEDO_ASSERT(done);
}

}  // namespace

std::string hmac_sha256(std::string_view key, std::string_view message) {
  std::string result(kHmacBytes, '\0');
  unsigned size = 0;
  const unsigned char* const done =
      ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()), key_bytes(message),
             message.size(), key_bytes(result), &size);
  need(done != nullptr);
  SPEEDO_ASSERT(size == kHmacBytes);
  return result;
}

std::string hkdf_sha256(std::string_view key, std::string_view salt, std::string_view info,
                        std::size_t bytes) {
  const std::unique_ptr<EVP_KDF, decltype(&::EVP_KDF_free)> kind(
      ::EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_HKDF, nullptr), ::EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&::EVP_KDF_CTX_free)> context(
      ::EVP_KDF_CTX_new(kind.get()), ::EVP_KDF_CTX_free);
  need(context != nullptr);
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      octets(OSSL_KDF_PARAM_KEY, key), octets(OSSL_KDF_PARAM_SALT, salt),
      octets(OSSL_KDF_PARAM_INFO, info), OSSL_PARAM_construct_end()};
  std::string result(bytes, '\0');
  need(::EVP_KDF_derive(context.get(), key_bytes(result), result.size(), parameters) == 1);
  return result;
}

std::string sha256(std::string_view message) {
  std::string result(SHA256_DIGEST_LENGTH, '\0');
  ::SHA256(key_bytes(message), message.size(), key_bytes(result));
  return result;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Result<std::string> random_bytes(std::size_t count) {
  std::string result(count, '\0');
  if (::RAND_bytes(key_bytes(result), static_cast<int>(count)) == 1) return result;
  return Error{ErrorCode::kInternal, "the system gives no random numbers for keys"};
}

void wipe(std::string& key) {
  ::OPENSSL_cleanse(key.data(), key.size());
  key.clear();
}

}  // namespace speedo
