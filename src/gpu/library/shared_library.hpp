#pragma once

#include <string>
#include <utility>

#include <dlfcn.h>

#include <fmt/format.h>

#include <speedo/base/result.hpp>

namespace speedo::gpu {

// A library that is loaded when it is first needed, so that the program starts without it, and
// stays loaded.
class SharedLibrary {
 public:
  // `name`: as the linker knows it, with the version ("libcudnn.so.9"); `remedy`: what to install.
  // Error: kUnsupported, with both.
  static Result<SharedLibrary> load(std::string name, std::string remedy);

  // Error: kMismatch if it has no such function.
  template <class Function>
  Result<void> find(const char* symbol, Function& function) const {
    function = reinterpret_cast<Function>(::dlsym(handle_, symbol));
    if (function != nullptr) return {};
    return Error{ErrorCode::kMismatch,
                 fmt::format("{} has no {}: not the version that this program was built for; {}",
                             name_, symbol, remedy_)};
  }

 private:
  SharedLibrary(void* handle, std::string name, std::string remedy)
      : handle_(handle), name_(std::move(name)), remedy_(std::move(remedy)) {}

  void* handle_;
  std::string name_, remedy_;
};

// "cuDNN 8.9.7 is here, and this program was built for 9.19.0: install ...", if the first numbers
// of two versions differ: within one, libraries keep their functions.
struct LibraryVersion {
  int major = 0, minor = 0, patch = 0;
};
Result<void> check_version(const std::string& library, LibraryVersion here, LibraryVersion built);

}  // namespace speedo::gpu
