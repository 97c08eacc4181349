#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <speedo/base/digest.hpp>
#include <speedo/base/ids.hpp>
#include <speedo/base/result.hpp>
#include <speedo/train/master_session.hpp>
#include <speedo/train/merger.hpp>
#include <speedo/train/worker_session.hpp>

namespace speedo::sim {

// What the processes of a simulated cluster do beside deciding, and the network between them. Each
// call is answered once, in virtual time: `done` is never called before the call has returned, and
// only in the process that called (Process::after).

// A node of the cluster, numbered in the order of being started.
using NodeId = Id<struct NodeTag>;

class Network {
 public:
  virtual ~Network() = default;
  // Carries a message; `arrive` is called when it is there. Between two nodes messages arrive in
  // their order unless the network is one that mixes them; each arrives late, never, or twice.
  virtual void carry(NodeId from, NodeId to, std::size_t bytes, std::function<void()> arrive) = 0;
};

class MasterWork {
 public:
  virtual ~MasterWork() = default;
  virtual void merge(master_command::StartMerge job,
                     std::function<void(Result<MergeResult>)> done) = 0;
  virtual void enter_stage(master_command::EnterStage stage,
                           std::function<void(Result<Version>)> done) = 0;
  // On the weights as they are when this is called.
  struct Score {
    float accuracy = 0.0F, loss = 0.0F;
  };
  virtual void test(std::uint64_t iteration, std::function<void(Result<Score>)> done) = 0;
  virtual void snapshot(std::uint64_t iteration, std::function<void(Result<void>)> done) = 0;
  // Without an answer. A plan's store has room for all.
  virtual void erase_worker(WorkerId) {}
};

class WorkerWork {
 public:
  virtual ~WorkerWork() = default;
  virtual void prepare(const WelcomeMessage& welcome,
                       std::function<void(Result<Digest>)> done) = 0;
  virtual void run(const TrainMessage& order, WorkerId worker,
                   std::function<void(Result<RunReport>)> done) = 0;
  // Whether the store says that the job is over. A plan's master does not vanish.
  virtual void look_for_end(std::uint64_t epoch, std::function<void(bool)> done) = 0;
  // The runs ordered so far may end with any result.
  virtual void cancel() = 0;
  virtual std::uint64_t progress() const = 0;
};

}  // namespace speedo::sim
