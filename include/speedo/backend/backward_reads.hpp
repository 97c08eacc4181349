#pragma once

namespace speedo {

// Which of its source and its result a backward pass reads; the other need not be there any more,
// and may be null.
struct BackwardReads {
  bool src = false, dst = false;

  bool operator==(const BackwardReads&) const = default;
};

}  // namespace speedo
