#pragma once

#include <chrono>
#include <thread>

namespace speedo::test {

// Returns once `holds` does, which it is asked every millisecond, so that those who are waited for
// have the processor. What never comes ends with the test's time limit.
template <typename Condition>
void poll_until(const Condition& holds) {
  while (!holds()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace speedo::test
