// Streams of a RecordingDriver that are captured, and the graphs that come of it.

#include <utility>

#include <fmt/format.h>

#include "support/gpu/recording_driver.hpp"

namespace speedo::test {

void RecordingDriver::not_while_capturing(const char* call) {
  if (captured_ == nullptr || capturing_ != std::this_thread::get_id()) return;
  report(fmt::format("{}: not while a stream is captured", call));
  capture_is_sound_ = false;
}

void RecordingDriver::not_captured(const StreamState& stream, const char* call,
                                   bool may_be_captured) {
  if (captured_ == nullptr) return;
  const bool is_here = capturing_ == std::this_thread::get_id();
  const bool is_captured = &stream == captured_;
  if (is_here && is_captured && may_be_captured) return;
  if (!is_here && !is_captured) return;
  report(fmt::format("{}: {}", call,
                     !is_here       ? "another thread uses a stream that is captured"
                     : !is_captured ? "on another stream than the one that is captured"
                                    : "no graph can hold it"));
  capture_is_sound_ = false;
}

void RecordingDriver::begin_capture(gpu::StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  StreamState* const found = alive(stream, "begin_capture");
  if (found == nullptr || broken_) return;
  if (captured_ != nullptr) return report("begin_capture: a stream is captured");
  captured_ = found;
  capturing_ = std::this_thread::get_id();
  capture_is_sound_ = !options_.captures_fail;
}

gpu::GraphHandle RecordingDriver::end_capture(gpu::StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  StreamState* const found = alive(stream, "end_capture");
  if (found == nullptr) return nullptr;
  if (broken_) {
    captured_ = nullptr;
    capture_.clear();
    return nullptr;
  }
  if (found != captured_ || capturing_ != std::this_thread::get_id()) {
    report("end_capture: this thread does not capture that stream");
    return nullptr;
  }
  captured_ = nullptr;
  std::vector<Piece> pieces = std::exchange(capture_, {});
  if (!capture_is_sound_) return nullptr;
  return reinterpret_cast<gpu::GraphHandle>(&graphs_.emplace_back(true, std::move(pieces)));
}

void RecordingDriver::launch(gpu::StreamHandle stream, gpu::GraphHandle graph) {
  const std::lock_guard lock(mutex_);
  StreamState* const where = alive(stream, "launch of a graph");
  if (where == nullptr || broken_) return;
  not_captured(*where, "launch of a graph", false);
  for (const GraphState& each : graphs_) {
    if (reinterpret_cast<gpu::GraphHandle>(const_cast<GraphState*>(&each)) != graph) continue;
    if (!each.is_alive) return report("launch: the graph was destroyed");
    ++graph_launches_;
    log_->count_graph();
    for (Piece piece : each.pieces) {
      for (const Access& access : piece.accesses) {
        if (access.block->is_alive) continue;
        report(fmt::format("a graph's {} names {}, which was freed", piece.name,
                           access.block->name()));
        piece.work = nullptr;
      }
      push(*where, std::move(piece));
    }
    return;
  }
  report("launch: no such graph");
}

void RecordingDriver::destroy(gpu::GraphHandle graph) {
  const std::lock_guard lock(mutex_);
  for (GraphState& each : graphs_) {
    if (reinterpret_cast<gpu::GraphHandle>(&each) != graph) continue;
    if (!each.is_alive) report("destroy: the graph was destroyed before");
    each.is_alive = false;
    each.pieces.clear();
    return;
  }
  report("destroy: no such graph");
}

}  // namespace speedo::test
