#include "gate/certificate.hpp"

#include <cstdio>
#include <string_view>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/shown_text.hpp"

namespace speedo {
namespace {

std::string time_text(const ASN1_TIME* time) {
  const std::unique_ptr<BIO, decltype(&::BIO_free_all)> memory(::BIO_new(::BIO_s_mem()),
                                                               ::BIO_free_all);
  ::ASN1_TIME_print(memory.get(), time);
  char* text = nullptr;
  const long size = ::BIO_get_mem_data(memory.get(), &text);
  return std::string(text, static_cast<std::size_t>(size));
}

}  // namespace

std::string Certificate::bytes() const {
  unsigned char* der = nullptr;
  const int size = ::i2d_X509(get(), &der);
  std::string bytes(reinterpret_cast<char*>(der), size > 0 ? static_cast<std::size_t>(size) : 0);
  ::OPENSSL_free(der);
  return bytes;
}

std::string Certificate::common_name() const {
  char text[256] = {};
  const int size = ::X509_NAME_get_text_by_NID(::X509_get_subject_name(get()), NID_commonName,
                                               text, sizeof(text));
  return shown_text({text, size > 0 ? static_cast<std::size_t>(size) : 0});
}

bool Certificate::is_for(GateRole role) const {
  const std::string wanted = fmt::format("{}{}", kRoleScheme, name_of(role));
  const std::unique_ptr<GENERAL_NAMES, decltype(&::GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(
          ::X509_get_ext_d2i(get(), NID_subject_alt_name, nullptr, nullptr)),
      ::GENERAL_NAMES_free);
  const int count = names ? sk_GENERAL_NAME_num(names.get()) : 0;
  for (int i = 0; i < count; ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    const std::string_view text(reinterpret_cast<const char*>(::ASN1_STRING_get0_data(uri)),
                                static_cast<std::size_t>(::ASN1_STRING_length(uri)));
    if (text == wanted) return true;
  }
  return false;
}

bool Certificate::stands_for(const std::string& host) const {
  // The common name is whom it was issued to: no address, though it may look like one.
  constexpr unsigned kFlags = X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;
  return ::X509_check_ip_asc(get(), host.c_str(), 0) == 1 ||
         ::X509_check_host(get(), host.c_str(), host.size(), kFlags, nullptr) == 1;
}

bool Certificate::is_issued_by(const Certificate& authority) const {
  return ::X509_check_issued(authority.get(), get()) == X509_V_OK &&
         ::X509_verify(get(), ::X509_get0_pubkey(authority.get())) == 1;
}

Result<void> Certificate::check_fit(GateRole role, const std::string& path) const {
  const auto unfit = [&](const std::string& what) {
    return Error{ErrorCode::kRefused, fmt::format("the certificate '{}' {}", path, what)};
  };
  if (::X509_cmp_current_time(::X509_get0_notAfter(get())) < 0) {
    return unfit("expired on " + time_text(::X509_get0_notAfter(get())) +
                 ": issue another one, or set this machine's clock");
  }
  if (::X509_cmp_current_time(::X509_get0_notBefore(get())) > 0) {
    return unfit("is valid from " + time_text(::X509_get0_notBefore(get())) +
                 " on: is this machine's clock right?");
  }
  if (is_for(role)) return {};
  for (const GateRole other : {GateRole::kMaster, GateRole::kWorker}) {
    if (is_for(other)) {
      return unfit(fmt::format("is for a {}, not for a {}", name_of(other), name_of(role)));
    }
  }
  return unfit(fmt::format("has no role: it needs the URI {}{} among its alternative names "
                           "(speedo cert issue makes such)",
                           kRoleScheme, name_of(role)));
}

Result<std::vector<Certificate>> read_certificates(const std::filesystem::path& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  if (!file) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("the certificate file '{}' cannot be opened", path.string())};
  }
  std::vector<Certificate> all;
  while (X509* const each = ::PEM_read_X509(file.get(), nullptr, nullptr, nullptr)) {
    all.emplace_back(std::shared_ptr<X509>(each, ::X509_free));
  }
  ::ERR_clear_error();
  if (!all.empty()) return all;
  return Error{ErrorCode::kConfig,
               fmt::format("'{}' holds no certificate (PEM)", path.string())};
}

}  // namespace speedo
