#pragma once

#include <cstdint>

namespace speedo::test {

// What the helper of these tests does when it is asked.
enum class Deed : std::uint32_t {
  kReverse,     // the input, backwards
  kWork,        // computes for as many milliseconds as the first number says, then kReverse
  kTell,        // what it was when it was prepared: "FILES VARIABLES"
  kReadFile,    // of the file that is given along
  kFill,        // as many bytes as the first number says, if there is room
  kFail,        // an error with control characters in it
  kTakeMemory,  // as much as the first number says, in pieces, and touches it
  kLie,         // says that it has written more than there is room for
  // Messages that no helper sends, for a group whose first task this is:
  kAnswerMany,   // more answers than tasks
  kAnswerEmpty,  // none
  kAnswerPart,   // half of one
  kAnswerHuge,   // two of a size that the window has room for once
  kAnswerWrap,   // two whose sizes are small together, in 64 bits
  kAnswerError,  // a lack of memory behind an answer, and another answer
  kCrash,
  kHang,
  kHangUp,  // closes the socket and goes on
  kOpen,
  kSocket,
  kExecute,
  kFork,
  kSignal,        // to another process
  kSignalThread,  // of its parent
  kBreakPage,     // says that memory is broken
  kRunnableMemory,
  kRunnableAgain,
  kUnlimit,   // asks for more memory
  kTruncate,  // the window, under the one that asks
};

}  // namespace speedo::test
