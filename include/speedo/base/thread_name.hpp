#pragma once

namespace speedo {

// Names the calling thread, for messages and debuggers. At most 15 characters; more are cut.
void name_thread(const char* name);

}  // namespace speedo
