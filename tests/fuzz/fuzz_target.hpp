#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace speedo::fuzz {

// What a target is given. It returns, whatever the bytes are: a crash, a sanitizer's finding, more
// memory than run.sh allows or a call that does not come back is a fault of the parser that it
// calls, an SPEEDO_ASSERT of its own one of what the parser promises.
using Bytes = std::span<const std::byte>;

struct Target {
  const char* name;  // of its corpus, too
  void (*run)(Bytes input);
};

// Those of this program, in no order.
std::vector<Target>& targets();

// From now on neither the program's log nor Protocol Buffers' says anything.
void be_silent();

struct AddedTarget {
  AddedTarget(const char* name, void (*run)(Bytes)) { targets().push_back({name, run}); }
};

}  // namespace speedo::fuzz

// SPEEDO_FUZZ_TARGET(name)(Bytes input) { ... }: the function that libFuzzer calls, in a program of
// its own, or one of those that the tests call with each file of its corpus.
#ifdef SPEEDO_LIBFUZZER
#define SPEEDO_FUZZ_TARGET(name)                                                      \
  static void fuzz_##name(::speedo::fuzz::Bytes input);                               \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    fuzz_##name(std::as_bytes(std::span(data, size)));                                \
    return 0;                                                                         \
  }                                                                                   \
  extern "C" int LLVMFuzzerInitialize(int*, char***) {                                \
    ::speedo::fuzz::be_silent();                                                      \
    return 0;                                                                         \
  }                                                                                   \
  static void fuzz_##name
#else
#define SPEEDO_FUZZ_TARGET(name)                                                  \
  static void fuzz_##name(::speedo::fuzz::Bytes input);                           \
  static const ::speedo::fuzz::AddedTarget added_fuzz_##name(#name, fuzz_##name); \
  static void fuzz_##name
#endif
