#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/store/parameter_store.hpp>
#include <speedo/train/master_session.hpp>
#include <speedo/train/merger.hpp>
#include <speedo/train/trainer.hpp>
#include <speedo/train/worker_session.hpp>

namespace speedo {

// A master or a worker as a whole, without a word of CAF: what main() calls.

using OpenStore = std::function<Result<std::shared_ptr<ParameterStore>>(const std::string& uri,
                                                                         const std::string& job)>;

struct MasterOptions {
  std::string bind = "127.0.0.1";   // address to listen on
  std::uint16_t port = 0;           // 0: any free one
  std::string host;                 // that workers are told; empty: bind, or the machine's name
  std::string store_uri;            // that workers are told
  std::string job;                  // the job's key space in the store
  MasterConfig session;             // model, store_uri and job are filled in by run_master
  StrategyOptions strategy;
  MergerConfig merger;
  JobSpec spec;
  // Weights to start from; empty: the net's fillers. Either may come from --snapshot/--weights.
  std::shared_ptr<caffe::NetParameter> initial_weights;
  std::shared_ptr<caffe::SolverState> initial_state;   // for kGradientOnly's history
  bool resume_from_store = false;   // SpeeDO's --resume: start from the weights in the store
};

struct MasterHooks {
  std::function<void(const std::string& address)> on_listening;   // "speedo://host:port"
  std::function<void(const MasterProgress&, const std::vector<TestScores>*)> on_progress;
  std::function<std::optional<std::string>()> poll_stop;  // a reason: stop cleanly
  std::function<Result<void>(std::int64_t iteration, const caffe::NetParameter& model,
                             caffe::SolverState& state)> snapshot;
};

// Runs until training is over or stopped. Blocking. Errors: kUnavailable (port in use: kCannotWrite
// is not used here, the message names the port), kRefused, kConfig, kData, kNotFinite.
Result<MasterProgress> run_master(const MasterOptions& options, const MasterHooks& hooks,
                                  const TrainerParts& parts, const OpenStore& open_store);

struct WorkerOptions {
  std::string master;               // as parse_address takes it
  std::string store_override;       // --redis at the worker: used instead of what the master says
  std::uint64_t count = 1;          // worker actors in this process
  std::string name_prefix;          // host/pid
  WorkerConfig session;             // name is filled in
};

struct WorkerHooks {
  std::function<std::optional<std::string>()> poll_stop;
};

Result<void> run_worker(const WorkerOptions& options, const WorkerHooks& hooks,
                        const TrainerParts& parts, const OpenStore& open_store);

// "host:port" of any of the accepted address forms. Error: kUsage, naming the forms.
struct Address {
  std::string host;
  std::uint16_t port = 0;
};
Result<Address> parse_address(const std::string& text);

}  // namespace speedo
