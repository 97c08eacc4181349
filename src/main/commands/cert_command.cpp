// `speedo cert`: a certificate authority for a cluster.

#include <sstream>

#include "base/log.hpp"
#include "cli/report/console.hpp"
#include "gate/authority.hpp"
#include "main/commands.hpp"
#include "main/program_options.hpp"

namespace speedo {

namespace {

struct CertFlags {
  std::string action, folder, certificate, role, names;
  int days = 0;
};

CertFlags cert_flags(const OptionValues& values) {
  CertFlags flags;
  values.get("action", flags.action);
  values.get("folder", flags.folder);
  values.get("certificate", flags.certificate);
  values.get("role", flags.role);
  values.get("names", flags.names);
  values.get("days", flags.days);
  return flags;
}

CertificateOrder order_of(const CertFlags& flags) {
  CertificateOrder order{.name = flags.certificate, .days = flags.days};
  if (flags.role == "worker") return order;
  order.role = GateRole::kMaster;
  order.is_server = flags.role != "master";
  std::istringstream names(flags.names);
  for (std::string name; std::getline(names, name, ',');) order.hosts.push_back(name);
  return order;
}

}  // namespace

Result<int> cert_command(const CommandLine& line) {
  OptionValues values(Program::kCert);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  const CertFlags flags = cert_flags(values);
  if (flags.action != "issue") {
    SPEEDO_TRY(values.refuse_given({"role", "names", "days"}, "with " + flags.action));
  } else if (flags.role == "worker") {
    SPEEDO_TRY(values.refuse_given({"names"}, "for a worker, whom nobody calls"));
  }
  set_up_console(false);
  const std::string place = flags.folder + "/" + flags.certificate;
  if (flags.action == "init") {
    if (!flags.certificate.empty()) return usage_error("init takes a folder and no name");
    SPEEDO_TRY(create_authority(flags.folder));
    SPEEDO_INFO("Made an authority: {}/{} goes to every machine, ca.key to none", flags.folder,
                kAuthorityFile);
    return 0;
  }
  if (flags.certificate.empty()) {
    return usage_error(flags.action + " needs the certificate's name behind the folder");
  }
  if (flags.action == "issue") {
    SPEEDO_TRY(issue_certificate(flags.folder, order_of(flags)));
    SPEEDO_INFO("Issued {}.pem and {}.key, for {}", place, place,
                flags.role == "redis" ? "Redis" : "a " + flags.role);
    return 0;
  }
  SPEEDO_ASSIGN(const int revoked, revoke_certificates(flags.folder, flags.certificate));
  SPEEDO_INFO("Revoked {} certificate{} of '{}': copy {}/{} to the master and all workers", revoked,
              revoked == 1 ? "" : "s", flags.certificate, flags.folder, kAuthorityFile);
  return 0;
}

}  // namespace speedo
