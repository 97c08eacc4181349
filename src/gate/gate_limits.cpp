#include "gate/gate_limits.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace speedo {

GateLimits limits_here() {
  GateLimits limits;
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return limits;
  const auto most = static_cast<std::size_t>(descriptors.rlim_cur);
  limits.unproved = std::clamp<std::size_t>(most / 8, 4, limits.unproved);
  limits.shaking = std::clamp<std::size_t>(most / 4, 4, limits.shaking);
  return limits;
}

FileStamps::FileStamps(const GateFiles& files) {
  for (const std::filesystem::path& path :
       {files.token, files.certificates.certificate, files.certificates.key,
        files.certificates.authority}) {
    struct stat status {};
    const bool exists = !path.empty() && ::stat(path.c_str(), &status) == 0;
    const bool is_file = exists && S_ISREG(status.st_mode);
    if (exists && !is_file && not_a_file_.empty()) not_a_file_ = path.string();
    stamps_.push_back(is_file ? fmt::format("{} {} {} {}", status.st_ino, status.st_size,
                                          status.st_ctim.tv_sec, status.st_ctim.tv_nsec)
                            : "none");
  }
}

}  // namespace speedo
