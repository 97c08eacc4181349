#include "cpu/gemm/openblas.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

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

#if defined(__x86_64__)
constexpr const char* kLastWithoutAvx = "Nehalem";
#endif

// The OpenBLAS core with the instruction set's kernels; null: OpenBLAS chooses itself.
const char* core_for(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kAvx512:
      return "SkylakeX";
    case CpuIsa::kAvx2:
      return "Haswell";
    case CpuIsa::kPortable:
      break;
  }
#if defined(__x86_64__)
  if (machine_isa() != CpuIsa::kPortable || are_cpu_kernels_pinned()) return kLastWithoutAvx;
#endif
  return nullptr;
}

void* open_library() {
  const BorrowedVariable one_thread("OPENBLAS_NUM_THREADS", "1");
  const char* core = core_for(cpu_isa());
  std::optional<BorrowedVariable> chosen;
  const bool may_choose = are_cpu_kernels_pinned() || std::getenv("OPENBLAS_CORETYPE") == nullptr;
  if (core != nullptr && may_choose) {
    chosen.emplace("OPENBLAS_CORETYPE", core);
  }
  return dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
}

template <class Function>
bool find(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

// Of each thread that computes a product, as OpenBLAS asks for it.
constexpr std::size_t kBufferBytes = (std::size_t{128} << 20U) + 4096;

bool has_limited_address_space() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

Result<OpenBlas> load() {
  OpenBlas loaded;
  decltype(&openblas_set_num_threads) set_num_threads = nullptr;
  decltype(&openblas_get_corename) get_corename = nullptr;
  void* library = open_library();
  if (library == nullptr || !find(library, "cblas_sgemm", loaded.sgemm) ||
      !find(library, "openblas_set_num_threads", set_num_threads) ||
      !find(library, "openblas_get_corename", get_corename)) {
    if (has_limited_address_space()) {
      return Error{ErrorCode::kFull, fmt::format("cannot load {}: {}: raise the limit of the "
                                                 "address space (ulimit -v)",
                                                 kLibrary, dlerror())};
    }
    return Error{ErrorCode::kUnsupported,
                 fmt::format("cannot load {}: {}; install OpenBLAS (Debian: libopenblas0)",
                             kLibrary, dlerror())};
  }
  set_num_threads(1);
  loaded.core = get_corename();
  return loaded;
}

const Result<OpenBlas>& instance();

// OpenBLAS keeps the buffer of a product that is done for the next one: who computes first finds
// one, whatever the threads that are started until then take of the address space.
void take_buffer() {
  constexpr int kSide = 128;
  const std::vector<float> factor(kSide * kSide);
  std::vector<float> product(kSide * kSide);
  instance()->sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kSide, kSide, kSide, 1.0F,
                    factor.data(), kSide, factor.data(), kSide, 0.0F, product.data(), kSide);
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

Result<void> check_room_for_openblas(int threads) {
  const std::size_t bytes = static_cast<std::size_t>(threads) * kBufferBytes;
  void* room = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) {
    return Error{ErrorCode::kFull,
                 fmt::format("{} thread{} of OpenBLAS need{} {} MiB of address space: raise its "
                             "limit (ulimit -v) or use fewer --threads",
                             threads, threads == 1 ? "" : "s", threads == 1 ? "s" : "",
                             bytes >> 20U)};
  }
  ::munmap(room, bytes);
  if (has_limited_address_space()) take_buffer();
  return {};
}

const OpenBlas& openblas() {
  SPEEDO_ASSERT(instance().has_value());
  return *instance();
}

}  // namespace speedo::cpu
