#pragma once

namespace speedo {

// How a helper program is started: with these files open and no others, and the arguments PARENT
// MEMORY_BYTES WINDOW_BYTES. Its first message is an answer that says whether it is confined.
inline constexpr int kHelperSocket = 3;
inline constexpr int kHelperWindow = 4;
inline constexpr int kHelperArguments = 3;

}  // namespace speedo
