#include "cpu/openblas.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

#include "cpu/isa.hpp"

namespace speedo::cpu {
namespace {

constexpr const char* kLibrary = "libopenblas.so.0";

// An environment variable with another value for a while.
class BorrowedVariable {
 public:
  BorrowedVariable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name); old != nullptr) old_ = old;
    setenv(name, value, 1);
  }
  ~BorrowedVariable() {
    if (old_.has_value()) {
      setenv(name_, old_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  BorrowedVariable(const BorrowedVariable&) = delete;
  BorrowedVariable& operator=(const BorrowedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

// The OpenBLAS core with the instruction set's kernels; null: OpenBLAS chooses itself. Nehalem's
// are the last without AVX.
const char* core_for(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kAvx512:
      return "SkylakeX";
    case CpuIsa::kAvx2:
      return "Haswell";
    case CpuIsa::kPortable:
      break;
  }
  return machine_isa() == CpuIsa::kPortable ? nullptr : "Nehalem";
}

void* open_library() {
  const BorrowedVariable one_thread("OPENBLAS_NUM_THREADS", "1");
  const char* core = core_for(cpu_isa());
  std::optional<BorrowedVariable> chosen;
  if (core != nullptr && std::getenv("OPENBLAS_CORETYPE") == nullptr) {
    chosen.emplace("OPENBLAS_CORETYPE", core);
  }
  return dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
}

template <class Function>
bool find(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

Result<OpenBlas> load() {
  OpenBlas loaded;
  decltype(&openblas_set_num_threads) set_num_threads = nullptr;
  decltype(&openblas_get_corename) get_corename = nullptr;
  void* library = open_library();
  if (library == nullptr || !find(library, "cblas_sgemm", loaded.sgemm) ||
      !find(library, "openblas_set_num_threads", set_num_threads) ||
      !find(library, "openblas_get_corename", get_corename)) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("cannot load {}: {}; install OpenBLAS (Debian: libopenblas0)",
                             kLibrary, dlerror())};
  }
  set_num_threads(1);
  loaded.core = get_corename();
  return loaded;
}

const Result<OpenBlas>& instance() {
  static const Result<OpenBlas> loaded = load();
  return loaded;
}

}  // namespace

Result<void> load_openblas() {
  if (!instance()) return instance().error();
  return {};
}

const OpenBlas& openblas() {
  SPEEDO_ASSERT(instance().has_value());
  return *instance();
}

}  // namespace speedo::cpu
