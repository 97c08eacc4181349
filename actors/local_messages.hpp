#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/core/solver.hpp>

#include "actors/compat.hpp"
#include "actors/node.hpp"
#include "train/job/part_peers.hpp"
#include "train/parts/part_orders.hpp"

namespace speedo {

class MasterWork;

// Messages that an actor gets from within its own process.

// Time passes.
struct TickMessage {};

// To the master: everything is ready. Both outlive the actor's use of them (see MasterActorHooks).
struct BeginMessage {
  MasterSession* session;
  MasterWork* work;
  // The master does not go before, even if training is over: workers of a master that died connect
  // again by then, and hear it.
  Instant reachable_until{0};
};

// To the master: work is done.
struct MasterNotice {
  MasterEvent event;
  std::shared_ptr<const std::vector<TestScores>> scores;  // of Tested
};

// To a worker: work is done.
struct WorkerNotice {
  WorkerEvent event;
};

// To a worker: how an attempt to connect ended.
struct ConnectNotice {
  Result<caf::actor> master;
};

// To the merger of a part: what it has to say to its master.
struct PartNotice {
  PartAnswer answer;
};

}  // namespace speedo

SPEEDO_LOCAL_MESSAGE(speedo::TickMessage)
SPEEDO_LOCAL_MESSAGE(speedo::BeginMessage)
SPEEDO_LOCAL_MESSAGE(speedo::MasterNotice)
SPEEDO_LOCAL_MESSAGE(speedo::WorkerNotice)
SPEEDO_LOCAL_MESSAGE(speedo::ConnectNotice)
SPEEDO_LOCAL_MESSAGE(speedo::PartTold)
SPEEDO_LOCAL_MESSAGE(speedo::PartNotice)
