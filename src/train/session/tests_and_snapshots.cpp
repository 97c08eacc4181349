#include "train/session/tests_and_snapshots.hpp"

#include <utility>

namespace speedo {

std::string diverged_test(std::uint64_t iteration) {
  return fmt::format(
      "training has diverged: the test loss of iteration {} is not finite; lower "
      "base_lr, set clip_gradients or check the data",
      iteration);
}

void TestsAndSnapshots::reach(std::uint64_t iteration, std::uint64_t test_interval) {
  tests_.set_interval(test_interval);
  tests_.reach(iteration);
  snapshots_.reach(iteration);
}

bool TestsAndSnapshots::start_due(const Moment& moment, SessionCommands& out) {
  if (moment.finite && std::exchange(snapshot_wished_, false)) {
    snapshots_.request(moment.iteration);
  }
  if (diverged_at_ && snapshots_.due(*diverged_at_)) {
    snapshots_.cancel();
    out.note(true, "no snapshot of iteration {} is written: its test loss is not finite",
             *diverged_at_);
  }
  if (const auto at = tests_.start()) out.add(master_command::StartTest{*at});
  if (moment.last_test && !tests_.is_done(*moment.last_test)) return false;
  const auto at = snapshots_.start();
  if (!at) return false;
  unfinished_snapshot_ = at;
  out.add(master_command::StartSnapshot{*at});
  return true;
}

void TestsAndSnapshots::tested(const master_event::Tested& event) {
  tests_.done();
  accuracy_ = event.accuracy;
  loss_ = event.loss;
  if (event.diverged) diverged_at_ = event.iteration;
}

void TestsAndSnapshots::show(MasterProgress& progress) const {
  progress.accuracy = accuracy_;
  progress.test_loss = loss_;
}

}  // namespace speedo
