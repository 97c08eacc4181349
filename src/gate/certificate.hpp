#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "gate/channel.hpp"
#include "gate/gate_names.hpp"

struct x509_st;  // X509

namespace speedo {

// What a certificate may be says a URI among its subject's alternative names: "speedo:master" or
// "speedo:worker".
inline constexpr const char* kRoleScheme = "speedo:";

class Certificate {
 public:
  explicit Certificate(std::shared_ptr<x509_st> certificate)
      : certificate_(std::move(certificate)) {}

  std::string bytes() const;  // DER
  std::string common_name() const;  // to be shown: whoever made it chose its letters
  bool is_for(GateRole role) const;
  // A name, or an address in numbers: one of its alternative names.
  bool stands_for(const std::string& host) const;
  bool is_issued_by(const Certificate& authority) const;
  // Whether its owner can use it now as `role`; `path`: for messages. Error: kRefused.
  Result<void> check_fit(GateRole role, const std::string& path) const;
  x509_st* get() const { return certificate_.get(); }

 private:
  std::shared_ptr<x509_st> certificate_;
};

// All certificates of a PEM file, at least one. Errors: kNotFound, kConfig.
Result<std::vector<Certificate>> read_certificates(const std::filesystem::path& path);

}  // namespace speedo
