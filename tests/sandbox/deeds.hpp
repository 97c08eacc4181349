#pragma once

#include <cstdint>

namespace speedo::test {

// What the helper of these tests does when it is asked.
enum class Deed : std::uint32_t {
  kReverse,     // the input, backwards
  kWork,        // computes for as many milliseconds as the first number says, then kReverse
  kTell,        // what it was when it was prepared: "FILES VARIABLES"
  kReadFile,    // of the file that is given along
  kFail,        // an error with control characters in it
  kTakeMemory,  // as much as the first number says, in pieces, and touches it
  kLie,         // says that it has written more than there is room for
  kCrash,
  kHang,
  kHangUp,  // closes the socket and goes on
  kOpen,
  kSocket,
  kExecute,
  kFork,
  kSignal,  // to its parent
  kRunnableMemory,
  kRunnableAgain,
  kUnlimit,   // asks for more memory
  kTruncate,  // the window, under the one that asks
};

}  // namespace speedo::test
