#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "gate/gate_names.hpp"

namespace speedo {

// A certificate authority of a cluster's own, as files of a folder: ca.pem (its certificate, and
// the list of what it has revoked: what --tls-ca names), ca.key, `issued` (a list) and NAME.pem and
// NAME.key of each certificate. Keys are for this user alone. Elliptic curves (P-256), signed with
// SHA-256. Who issues or revokes waits, seconds at most, for another process that does.

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

// Revokes all that was issued by that name and has not expired, also what was issued anew since
// (`issued_list`), and gives their number. From then on none of those who have this ca.pem accept
// them. What else lies in ca.pem stays. Errors: kNotFound, kConfig; kUsage if none is left to
// revoke; kCannotWrite.
Result<int> revoke_certificates(const std::filesystem::path& folder, const std::string& name);

}  // namespace speedo
