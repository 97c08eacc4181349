#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "gate/gate_names.hpp"

namespace speedo {

// A certificate authority of a cluster's own, as files of a folder: ca.pem (its certificate, and
// the list of what it has revoked: what --tls-ca names), ca.key, and NAME.pem and NAME.key of each
// certificate. Keys are for this user alone. Elliptic curves (P-256), signed with SHA-256.

inline constexpr const char* kAuthorityFile = "ca.pem";
inline constexpr int kAuthorityDays = 3650;
inline constexpr int kCertificateDaysMax = 3650;

// Makes the folder, if it is missing, and the authority. Error: kCannotWrite, also if there is one.
Result<void> create_authority(const std::filesystem::path& folder);

struct CertificateOrder {
  std::string name;                // also of its files
  GateRole role = GateRole::kWorker;
  bool is_server = false;  // of another server, such as Redis: no role, it passes for nobody here
  std::vector<std::string> hosts = {};  // names and addresses that master or server is called by
  int days = 365;                  // up to kCertificateDaysMax; 0: it is over at once
};
// Errors: kUsage for a name that is none; kNotFound, kConfig without an authority; kCannotWrite,
// also if there is one of that name.
Result<void> issue_certificate(const std::filesystem::path& folder, const CertificateOrder& order);

// From then on none of those who have this ca.pem accept it. What else lies in ca.pem stays. One at
// a time: waits, seconds at most, for another process that does the same. Errors: kNotFound,
// kConfig; kUsage if it is revoked already; kCannotWrite.
Result<void> revoke_certificate(const std::filesystem::path& folder, const std::string& name);

}  // namespace speedo
