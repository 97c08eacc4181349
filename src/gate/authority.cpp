#include "gate/authority.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/file.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/base/file.hpp>

#include "base/bare_host.hpp"
#include "base/descriptor.hpp"
#include "gate/certificate.hpp"
#include "gate/issued_list.hpp"
#include "gate/key_material.hpp"
#include "gate/pem_text.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

using KeyPair = std::shared_ptr<EVP_PKEY>;
using MadeCertificate = std::shared_ptr<X509>;
using RevocationList = std::shared_ptr<X509_CRL>;
using Bio = std::unique_ptr<BIO, decltype(&::BIO_free_all)>;
using Time = std::unique_ptr<ASN1_TIME, decltype(&::ASN1_TIME_free)>;
using Number = std::unique_ptr<BIGNUM, decltype(&::BN_free)>;
using Serial = std::unique_ptr<ASN1_INTEGER, decltype(&::ASN1_INTEGER_free)>;

constexpr std::size_t kNameLettersMax = 64;
constexpr std::size_t kSerialBytes = 16;
constexpr long kDaySeconds = 86400;
constexpr std::chrono::seconds kLockPatience{10};
constexpr std::chrono::milliseconds kLockPause{5};

// Certificates are valid from a day before they were made: clocks differ.
constexpr long kBackdatedSeconds = kDaySeconds;

KeyPair draw_key() {
  KeyPair key(EVP_EC_gen("P-256"), ::EVP_PKEY_free);
  SPEEDO_ASSERT(key != nullptr);
  return key;
}

Bio memory_bio() { return {::BIO_new(::BIO_s_mem()), ::BIO_free_all}; }

std::string text_of(const Bio& memory) {
  char* text = nullptr;
  const long size = ::BIO_get_mem_data(memory.get(), &text);
  return std::string(text, static_cast<std::size_t>(size));
}

std::string pem_of(const X509* certificate) {
  const Bio memory = memory_bio();
  ::PEM_write_bio_X509(memory.get(), certificate);
  return text_of(memory);
}

// Both files, or neither. Neither may exist.
Result<void> write_pair(const fs::path& key_path, const KeyPair& key, const fs::path& path,
                        const std::string& certificate) {
  const Bio memory = memory_bio();
  ::PEM_write_bio_PrivateKey(memory.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  std::string text = text_of(memory);
  const auto key_written = write_new_file(key_path, {text}, fs::perms{0600});
  wipe(text);
  SPEEDO_TRY(key_written);
  auto written = write_new_file(path, {certificate}, fs::perms{0644});
  std::error_code ignored;
  if (!written) fs::remove(key_path, ignored);
  return written;
}

Result<KeyPair> read_key(const fs::path& path) {
  const Bio file(::BIO_new_file(path.c_str(), "r"), ::BIO_free_all);
  KeyPair key(file ? ::PEM_read_bio_PrivateKey(file.get(), nullptr, nullptr, nullptr) : nullptr,
              ::EVP_PKEY_free);
  ::ERR_clear_error();
  if (key) return key;
  return Error{ErrorCode::kNotFound,
               fmt::format("'{}' is no private key: was the authority made here (speedo cert "
                           "init)?",
                           path.string())};
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = ::X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  SPEEDO_ASSERT(extension != nullptr);
  ::X509_add_ext(certificate, extension, -1);
  ::X509_EXTENSION_free(extension);
}

// Without extensions and signature.
Result<MadeCertificate> blank_certificate(const std::string& name, const KeyPair& key, int days) {
  MadeCertificate made(::X509_new(), ::X509_free);
  SPEEDO_ASSIGN(std::string serial, random_bytes(kSerialBytes));
  serial[0] = static_cast<char>((serial[0] & 0x7F) | 0x40);  // a positive number of all its bytes
  const Number number(
      ::BN_bin2bn(reinterpret_cast<const unsigned char*>(serial.data()), kSerialBytes, nullptr),
      ::BN_free);
  ::BN_to_ASN1_INTEGER(number.get(), ::X509_get_serialNumber(made.get()));
  ::X509_set_version(made.get(), X509_VERSION_3);
  ::X509_gmtime_adj(X509_getm_notBefore(made.get()), -kBackdatedSeconds);
  ::X509_gmtime_adj(X509_getm_notAfter(made.get()), days * kDaySeconds);
  ::X509_set_pubkey(made.get(), key.get());
  ::X509_NAME_add_entry_by_txt(::X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.data()),
                               static_cast<int>(name.size()), -1, 0);
  return made;
}

struct Authority {
  MadeCertificate certificate;
  KeyPair key;
  RevocationList revoked;
  // Of its file: other authorities, and what else people have put there, stay as they are.
  std::string before, after;  // the list
};

MadeCertificate certificate_in(const PemBlock& block) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(block.bytes.data());
  return {::d2i_X509(nullptr, &bytes, static_cast<long>(block.bytes.size())), ::X509_free};
}

RevocationList list_in(const PemBlock& block) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(block.bytes.data());
  return {::d2i_X509_CRL(nullptr, &bytes, static_cast<long>(block.bytes.size())), ::X509_CRL_free};
}

MadeCertificate find_certificate(const std::vector<PemBlock>& blocks, const KeyPair& key) {
  for (const PemBlock& block : blocks) {
    if (block.kind != PEM_STRING_X509) continue;
    MadeCertificate found = certificate_in(block);
    if (found && ::X509_check_private_key(found.get(), key.get()) == 1) return found;
  }
  return nullptr;
}

Result<Authority> read_authority(const fs::path& folder) {
  const fs::path path = folder / kAuthorityFile;
  const auto unfit = [&](const std::string& what) {
    ::ERR_clear_error();
    return Error{ErrorCode::kConfig, fmt::format("'{}' {}", path.string(), what)};
  };
  SPEEDO_ASSIGN(const std::string text, read_pem_file(path));
  const auto blocks = pem_blocks(text);
  if (!blocks) return unfit("is damaged: " + blocks.error().message);
  Authority authority;
  SPEEDO_ASSIGN(authority.key, read_key(folder / "ca.key"));
  authority.certificate = find_certificate(*blocks, authority.key);
  if (!authority.certificate) return unfit("holds no certificate of the key ca.key beside it");
  const X509_NAME* const name = ::X509_get_subject_name(authority.certificate.get());
  for (const PemBlock& block : *blocks) {
    if (block.kind != PEM_STRING_X509_CRL) continue;
    authority.revoked = list_in(block);
    if (!authority.revoked) return unfit("has a list of revoked certificates that is none");
    if (::X509_NAME_cmp(::X509_CRL_get_issuer(authority.revoked.get()), name) != 0) continue;
    authority.before = text.substr(0, block.begin);
    authority.after = text.substr(block.end);
    ::ERR_clear_error();
    return authority;
  }
  return unfit("has no list of revoked certificates of this authority");
}

// Signs the list anew, as of now, and gives the text of ca.pem.
std::string sealed(const Authority& authority) {
  X509_CRL* const list = authority.revoked.get();
  const Time now(::X509_gmtime_adj(nullptr, -kBackdatedSeconds), ::ASN1_TIME_free);
  ::X509_CRL_set1_lastUpdate(list, now.get());
  ::X509_CRL_sort(list);
  const int signature = ::X509_CRL_sign(list, authority.key.get(), ::EVP_sha256());
  SPEEDO_ASSERT(signature > 0);
  const Bio memory = memory_bio();
  ::PEM_write_bio_X509_CRL(memory.get(), list);
  return authority.before + text_of(memory) + authority.after;
}

// Of the folder, until it is closed: who reads the list, changes it and writes it is alone, as else
// what another one revokes meanwhile would be forgotten.
Result<Descriptor> lock(const fs::path& folder) {
  const auto unlockable = [&](const std::string& why) {
    return Error{ErrorCode::kCannotWrite,
                 fmt::format("the folder '{}' cannot be locked: {}", folder.string(), why)};
  };
  Descriptor held(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (held.get() < 0) {
    if (errno != ENOENT && errno != ENOTDIR) return unlockable(std::strerror(errno));
    return Error{ErrorCode::kNotFound, fmt::format("there is no folder '{}'", folder.string())};
  }
  const Instant end = steady_clock().now() + kLockPatience;
  while (::flock(held.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return unlockable(std::strerror(errno));
    if (steady_clock().now() >= end) {
      return unlockable("another speedo cert has been changing it for a while; end that one, or "
                        "try again");
    }
    std::this_thread::sleep_for(kLockPause);
  }
  return held;
}

// As in the list of what was issued.
std::string hex_of(const ASN1_INTEGER* serial) {
  const Number number(::ASN1_INTEGER_to_BN(serial, nullptr), ::BN_free);
  char* const text = ::BN_bn2hex(number.get());
  std::string hex = text;
  ::OPENSSL_free(text);
  return hex;
}

Serial serial_of(const std::string& hex) {
  BIGNUM* made = nullptr;
  ::BN_hex2bn(&made, hex.c_str());
  const Number number(made, ::BN_free);
  return {::BN_to_ASN1_INTEGER(number.get(), nullptr), ::ASN1_INTEGER_free};
}

std::string to_text(const ASN1_TIME* time) {
  std::tm parts{};
  ::ASN1_TIME_to_tm(time, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

// Of all certificates of that name that anybody may still take for valid. What lies in its file was
// perhaps issued before there was a list.
Result<std::vector<Serial>> serials_of(const fs::path& folder, const std::string& name) {
  std::vector<Serial> serials;
  SPEEDO_ASSIGN(const std::vector<IssuedCertificate> all, read_issued(folder));
  const Time over(::X509_gmtime_adj(nullptr, -kBackdatedSeconds), ::ASN1_TIME_free);
  const std::string earliest = to_text(over.get());
  bool is_listed = false;
  for (const IssuedCertificate& issued : all) {
    if (issued.name != name) continue;
    is_listed = true;
    if (issued.expiry >= earliest) serials.push_back(serial_of(issued.serial));
  }
  const auto own = read_certificates(folder / (name + ".pem"));
  if (own) {
    serials.emplace_back(::ASN1_INTEGER_dup(::X509_get0_serialNumber(own->front().get())),
                         ::ASN1_INTEGER_free);
  } else if (!is_listed) {
    return own.error();
  }
  return serials;
}

Result<void> check_not_there(const fs::path& folder, const std::string& name) {
  for (const char* ending : {".key", ".pem"}) {
    const std::string file = name + ending;
    std::error_code ignored;
    if (!fs::exists(folder / file, ignored)) continue;
    return Error{
        ErrorCode::kCannotWrite,
        fmt::format("'{0}' exists, and is not written over. To issue it anew, move {1}.pem "
                    "and {1}.key away; if others may know its key, revoke it before "
                    "(speedo cert revoke), as that takes all of its name",
                    (folder / file).string(), name)};
  }
  return {};
}

Result<void> check_name(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  });
  if (plain && !name.empty() && name[0] != '.' && name.size() <= kNameLettersMax && name != "ca") {
    return {};
  }
  return usage_error(fmt::format("'{}' is no name for a certificate: letters, digits, '-', '_' and "
                                 "'.', at most {}, not \"ca\"",
                                 name, kNameLettersMax));
}

bool is_address(const std::string& host) {
  ASN1_OCTET_STRING* const address = ::a2i_IPADDRESS(host.c_str());
  const bool found = address != nullptr;
  ::ASN1_OCTET_STRING_free(address);
  ::ERR_clear_error();
  return found;
}

// A part of a name between its dots.
bool is_label(std::string_view label) {
  constexpr std::size_t kLettersMax = 63;
  const bool plain = std::ranges::all_of(label, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
  });
  return plain && !label.empty() && label.size() <= kLettersMax && label.front() != '-';
}

// "*." in front stands for any one label. A name whose last label is a number would be taken for
// an address by whoever calls it.
bool is_host_name(std::string_view name) {
  if (name.starts_with("*.")) name.remove_prefix(2);
  std::string_view label;
  do {
    const std::size_t dot = name.find('.');
    label = name.substr(0, dot);
    if (!is_label(label)) return false;
    name = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
    if (dot != std::string_view::npos && name.empty()) return false;
  } while (!name.empty());
  return label.find_first_not_of("0123456789") != std::string_view::npos;
}

// As it stands in a certificate; empty if it is none. An IPv6 address may be in brackets.
std::string alternative_name(const std::string& host) {
  const std::string bare = bare_host(host);
  if (is_address(bare)) return "IP:" + bare;
  return is_host_name(bare) ? "DNS:" + bare : std::string();
}

Result<std::string> alternative_names(const CertificateOrder& order) {
  const bool is_called = order.is_server || order.role == GateRole::kMaster;
  if (is_called && order.hosts.empty()) {
    return usage_error("a certificate of a master or server needs a name or an address by which "
                       "it is called (--names)");
  }
  std::string names;
  if (!order.is_server) names = fmt::format("URI:{}{}", kRoleScheme, name_of(order.role));
  for (const std::string& host : order.hosts) {
    const std::string name = alternative_name(host);
    if (name.empty()) {
      return usage_error("'" + host + "' is neither a name nor an address: give host names of "
                         "letters, digits, '-' and '.', or addresses, without a port");
    }
    if (!names.empty()) names += ',';
    names += name;
  }
  return names;
}

}  // namespace

Result<void> create_authority(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) {
    return Error{ErrorCode::kCannotWrite,
                 fmt::format("cannot make the folder '{}': {}", folder.string(), code.message())};
  }
  // Lists of what was revoked are found by their authority's name: no two have the same.
  std::uint64_t mark = 0;
  SPEEDO_ASSIGN(const std::string drawn, random_bytes(sizeof(mark)));
  std::memcpy(&mark, drawn.data(), sizeof(mark));
  Authority authority;
  authority.key = draw_key();
  SPEEDO_ASSIGN(authority.certificate,
                blank_certificate(fmt::format("SpeeDO authority {:016x}", mark), authority.key,
                                  kAuthorityDays));
  X509* const own = authority.certificate.get();
  ::X509_set_issuer_name(own, ::X509_get_subject_name(own));
  add_extension(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(own, own, NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(own, own, NID_subject_key_identifier, "hash");
  const int signature = ::X509_sign(own, authority.key.get(), ::EVP_sha256());
  SPEEDO_ASSERT(signature > 0);
  authority.revoked = RevocationList(::X509_CRL_new(), ::X509_CRL_free);
  ::X509_CRL_set_version(authority.revoked.get(), X509_CRL_VERSION_2);
  ::X509_CRL_set_issuer_name(authority.revoked.get(), ::X509_get_subject_name(own));
  authority.before = pem_of(own);
  return write_pair(folder / "ca.key", authority.key, folder / kAuthorityFile, sealed(authority));
}

Result<void> issue_certificate(const fs::path& folder, const CertificateOrder& order) {
  SPEEDO_TRY(check_name(order.name));
  SPEEDO_ASSERT(order.days >= 0 && order.days <= kCertificateDaysMax);
  SPEEDO_ASSIGN(const std::string names, alternative_names(order));
  SPEEDO_ASSIGN(const Descriptor alone, lock(folder));
  SPEEDO_ASSIGN(const Authority authority, read_authority(folder));
  SPEEDO_TRY(check_not_there(folder, order.name));
  const KeyPair key = draw_key();
  SPEEDO_ASSIGN(const MadeCertificate made, blank_certificate(order.name, key, order.days));
  X509* const issuer = authority.certificate.get();
  ::X509_set_issuer_name(made.get(), ::X509_get_subject_name(issuer));
  add_extension(made.get(), issuer, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(made.get(), issuer, NID_key_usage, "critical,digitalSignature");
  add_extension(made.get(), issuer, NID_ext_key_usage,
                order.is_server || order.role == GateRole::kMaster ? "serverAuth,clientAuth"
                                                                   : "clientAuth");
  add_extension(made.get(), issuer, NID_authority_key_identifier, "keyid");
  if (!names.empty()) add_extension(made.get(), issuer, NID_subject_alt_name, names);
  const int signature = ::X509_sign(made.get(), authority.key.get(), ::EVP_sha256());
  SPEEDO_ASSERT(signature > 0);
  // Before anybody can have it: what is not in the list could not be revoked later.
  SPEEDO_TRY(add_issued(folder, {order.name, hex_of(::X509_get0_serialNumber(made.get())),
                                 to_text(::X509_get0_notAfter(made.get()))}));
  return write_pair(folder / (order.name + ".key"), key, folder / (order.name + ".pem"),
                    pem_of(made.get()));
}

Result<int> revoke_certificates(const fs::path& folder, const std::string& name) {
  SPEEDO_TRY(check_name(name));
  SPEEDO_ASSIGN(const Descriptor alone, lock(folder));
  SPEEDO_ASSIGN(const Authority authority, read_authority(folder));
  SPEEDO_ASSIGN(const std::vector<Serial> serials, serials_of(folder, name));
  const Time now(::X509_gmtime_adj(nullptr, 0), ::ASN1_TIME_free);
  int revoked = 0;
  for (const Serial& serial : serials) {
    X509_REVOKED* known = nullptr;
    if (::X509_CRL_get0_by_serial(authority.revoked.get(), &known, serial.get()) == 1) continue;
    X509_REVOKED* const entry = ::X509_REVOKED_new();
    ::X509_REVOKED_set_serialNumber(entry, serial.get());
    ::X509_REVOKED_set_revocationDate(entry, now.get());
    ::X509_CRL_add0_revoked(authority.revoked.get(), entry);
    ++revoked;
  }
  if (revoked == 0) {
    return usage_error("all that was issued as '" + name + "' is revoked already, or has expired");
  }
  SPEEDO_TRY(write_file_atomically(folder / kAuthorityFile, sealed(authority)));
  return revoked;
}

}  // namespace speedo
