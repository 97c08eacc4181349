#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include <speedo/base/result.hpp>

#include "store/key_value.hpp"
#include "store/redis/slot_map.hpp"

namespace speedo {

// An operation on its way, and what it has met so far.
struct RedisTask {
  KvPtr operation;
  bool asks = false;  // goes to a node that takes its slot over: ASKING comes before it
  int redirects = 0;  // since the last failure
  int failures = 0;
  std::chrono::steady_clock::time_point first_failure{};
};

// Why a connection to a cluster's node gives a task back undone. No redirect: the connection broke,
// or its server was not ready.
struct RedisRefusal {
  Error error;
  RedisAddress from;
  std::optional<RedisRedirect> redirect;
};

// Called on a connection's thread, which must not wait for it; takes the task over.
using GiveBack = std::function<void(RedisTask task, const RedisRefusal& refusal)>;

}  // namespace speedo
