#include "gpu/library/shared_library.hpp"

namespace speedo::gpu {

Result<SharedLibrary> SharedLibrary::load(std::string name, std::string remedy) {
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("cannot load {}: {}; {}", name, ::dlerror(), remedy)};
  }
  return SharedLibrary(handle, std::move(name), std::move(remedy));
}

Result<void> check_version(const std::string& library, LibraryVersion here, LibraryVersion built) {
  if (here.major == built.major) return {};
  return Error{ErrorCode::kMismatch,
               fmt::format("{} {}.{}.{} is here, and this program was built for {}.{}.{}: install "
                           "a version {}, or build it with the one that is here",
                           library, here.major, here.minor, here.patch, built.major, built.minor,
                           built.patch, built.major)};
}

}  // namespace speedo::gpu
