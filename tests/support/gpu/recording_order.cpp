// In which order a RecordingDriver runs what is queued, and what it makes of the order that events
// give: every piece has a clock, which counts for each stream the pieces that are surely done
// before. Two accesses of the same bytes, one of which writes, need one that knows of the other.

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/random.hpp>

#include "support/gpu/recording_driver.hpp"

namespace speedo::test {

void RecordingDriver::merge(Clock& into, const Clock& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

std::uint64_t RecordingDriver::at(const Clock& clock, std::size_t stream) {
  return stream < clock.size() ? clock[stream] : 0;
}

bool RecordingDriver::is_blocked(const StreamState& stream) {
  if (stream.pieces.empty()) return true;
  const Piece& front = stream.pieces.front();
  return front.waits_for != nullptr && front.waits_for->done < front.generation;
}

RecordingDriver::StreamState* RecordingDriver::stream_that_records(const EventState& event,
                                                                   std::uint64_t generation) {
  for (StreamState& stream : streams_) {
    for (const Piece& piece : stream.pieces) {
      if (piece.records == &event && piece.generation == generation) return &stream;
    }
  }
  return nullptr;
}

// The stream itself, or the one that it waits for; null: none can go on.
RecordingDriver::StreamState* RecordingDriver::runnable_for(StreamState& stream) {
  StreamState* next = &stream;
  for (std::size_t i = 0; i <= streams_.size(); ++i) {
    if (next == nullptr || next->pieces.empty()) return nullptr;
    if (!is_blocked(*next)) return next;
    const Piece& front = next->pieces.front();
    next = stream_that_records(*front.waits_for, front.generation);
  }
  return nullptr;
}

RecordingDriver::StreamState* RecordingDriver::draw(StreamState& wanted) {
  if (options_.seed == 0) return runnable_for(wanted);
  std::vector<StreamState*> open;
  for (StreamState& stream : streams_) {
    if (!is_blocked(stream)) open.push_back(&stream);
  }
  if (open.empty()) return nullptr;
  return open[mix64(options_.seed * 1'000'003 + draws_++) % open.size()];
}

void RecordingDriver::run_until(StreamState& stream, const std::function<bool()>& is_over) {
  while (!is_over()) {
    StreamState* const next = draw(stream);
    if (next == nullptr) {
      report("the host waits for what never happens");
      break;
    }
    run_front(*next);
  }
  device_.close();
}

void RecordingDriver::run_front(StreamState& stream) {
  Piece piece = std::move(stream.pieces.front());
  stream.pieces.pop_front();
  if (options_.keeps_history) history_.push_back(piece.name);
  if (stream.clock.size() <= stream.index) stream.clock.resize(stream.index + 1);
  merge(stream.clock, piece.queued_at);
  if (piece.waits_for != nullptr) merge(stream.clock, piece.waits_for->clocks[piece.generation]);
  ++stream.clock[stream.index];
  if (piece.records != nullptr) {
    piece.records->clocks[piece.generation] = stream.clock;
    piece.records->done = std::max(piece.records->done, piece.generation);
  }
  if (!piece.work) return;
  for (const Access& access : piece.accesses) device_.open(*access.block);
  if (piece.is_kernel) {
    run_kernel(stream, piece);
  } else {
    for (const Access& access : piece.accesses) note(stream, piece, access);
    piece.work();
  }
}

// What a kernel reads begins at its arguments; what it writes is what has changed.
void RecordingDriver::run_kernel(StreamState& stream, Piece& piece) {
  std::map<WatchedMemory::Block*, std::vector<std::byte>> before;
  for (const Access& access : piece.accesses) {
    const WatchedMemory::Block& block = *access.block;
    before.try_emplace(access.block, block.data, block.data + block.bytes);
    note(stream, piece, {access.block, access.first, access.first + 1, false});
  }
  piece.work();
  for (const auto& [block, old] : before) {
    if (std::memcmp(old.data(), block->data, old.size()) != 0) {
      const auto first = std::mismatch(old.begin(), old.end(), block->data);
      std::size_t last = block->bytes;
      while (old[last - 1] == block->data[last - 1]) --last;
      note(stream, piece, {block, first.second, block->data + last, true});
    }
    if (!block->was_damaged && !WatchedMemory::is_intact(*block)) {
      block->was_damaged = true;
      report(fmt::format("{} writes beyond {}", piece.name, block->name()));
    }
  }
}

void RecordingDriver::note(StreamState& stream, const Piece& piece, const Access& access) {
  std::vector<PastAccess>& past = past_[access.block];
  const std::uint64_t now = at(stream.clock, stream.index);
  for (const PastAccess& other : past) {
    if (other.stream == stream.index) continue;
    if (!other.access.writes && !access.writes) continue;
    if (other.access.last <= access.first || access.last <= other.access.first) continue;
    if (other.time <= at(stream.clock, other.stream)) continue;
    report(fmt::format("{} and {} use the same memory on two streams without an order", other.name,
                       piece.name));
  }
  // What a stream did before is known wherever what it did last is.
  std::erase_if(past, [&](const PastAccess& other) {
    return other.stream == stream.index && other.access.writes == access.writes &&
           other.access.first >= access.first && other.access.last <= access.last;
  });
  past.push_back({access, stream.index, now, piece.name});
}

// What the host knows is known to all that it queues from now on.
void RecordingDriver::know(const Clock& clock) {
  merge(host_, clock);
  const bool is_idle = std::all_of(streams_.begin(), streams_.end(),
                                   [](const StreamState& each) { return each.pieces.empty(); });
  if (!is_idle) return;
  for (auto& [block, past] : past_) {
    std::erase_if(past,
                  [&](const PastAccess& each) { return each.time <= at(host_, each.stream); });
  }
}

}  // namespace speedo::test
