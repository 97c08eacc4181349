#include <speedo/base/thread_name.hpp>

#include <string>

#include <pthread.h>

namespace speedo {

void name_thread(const char* name) {
  constexpr std::size_t kNameMax = 15;  // Linux keeps 16 bytes with the end.
  ::pthread_setname_np(::pthread_self(), std::string(name).substr(0, kNameMax).c_str());
}

}  // namespace speedo
