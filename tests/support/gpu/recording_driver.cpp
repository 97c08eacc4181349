#include "support/gpu/recording_driver.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/digest.hpp>
#include <speedo/base/random.hpp>

namespace speedo::test {
namespace {

const std::byte* bytes_of(const void* memory) { return static_cast<const std::byte*>(memory); }

}  // namespace

RecordingDriver::RecordingDriver(std::shared_ptr<CallLog> log, const RecordingOptions& options)
    : log_(std::move(log)), options_(options) {}

RecordingDriver::~RecordingDriver() {
  const std::lock_guard lock(mutex_);
  report_what_is_left();
}

void RecordingDriver::let_go() {
  const std::lock_guard lock(mutex_);
  report_what_is_left();
  log_->count_release();
}

void RecordingDriver::report_what_is_left() {
  for (const WatchedMemory* memory : {&device_, &pinned_}) {
    for (const auto& [pages, block] : memory->blocks()) {
      if (block.is_alive) report(block.name() + " was never freed");
    }
  }
  for (const StreamState& stream : streams_) {
    if (stream.is_alive) report("a stream was never destroyed");
  }
  for (const EventState& event : events_) {
    if (event.is_alive) report("an event was never destroyed");
  }
  for (const GraphState& graph : graphs_) {
    if (graph.is_alive) report("a graph was never destroyed");
  }
  if (captured_ != nullptr) report("a capture was never ended");
}

// The same fault of a loop is said once.
void RecordingDriver::report(std::string violation) {
  if (reported_.insert(violation).second) log_->report(std::move(violation));
}

// Memory.

Result<void*> RecordingDriver::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  not_while_capturing("allocate");
  if (broken_) return *broken_;
  if (bytes == 0) report("allocates no bytes");
  if (bytes > options_.capacity || used_bytes_ > options_.capacity - bytes) {
    return Error{ErrorCode::kFull, fmt::format("no room on the device for {} bytes", bytes)};
  }
  used_bytes_ += bytes;
  return static_cast<void*>(device_.allocate(bytes).data);
}

Result<void*> RecordingDriver::allocate_pinned(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  not_while_capturing("allocate_pinned");
  if (broken_) return *broken_;
  if (bytes > options_.capacity) {
    return Error{ErrorCode::kFull, fmt::format("no room on the host for {} bytes", bytes)};
  }
  return static_cast<void*>(pinned_.allocate(bytes).data);
}

void RecordingDriver::free(void* memory) { free_from(device_, memory, "free"); }
void RecordingDriver::free_pinned(void* memory) { free_from(pinned_, memory, "free_pinned"); }

void RecordingDriver::free_from(WatchedMemory& memory, void* address, const char* call) {
  const std::lock_guard lock(mutex_);
  not_while_capturing(call);
  WatchedMemory::Block* const block = memory.find(address);
  if (block == nullptr || block->data != address) {
    report(fmt::format("{}: nothing was allocated there", call));
    return;
  }
  if (!block->is_alive) {
    report(fmt::format("{}: {} was freed before", call, block->name()));
    return;
  }
  for (StreamState& stream : streams_) {
    for (Piece& piece : stream.pieces) {
      for (const Access& access : piece.accesses) {
        if (access.block != block) continue;
        report(fmt::format("{}: {} while {} is queued, which uses it", call, block->name(),
                           piece.name));
        piece.work = nullptr;
      }
    }
  }
  if (&memory == &device_) used_bytes_ -= block->bytes;
  past_.erase(block);
  if (!memory.release(*block) && !block->was_damaged) {
    report(fmt::format("{}: somebody wrote beyond {}", call, block->name()));
  }
}

// Streams and events.

RecordingDriver::StreamState* RecordingDriver::alive(gpu::StreamHandle stream, const char* call) {
  for (StreamState& each : streams_) {
    if (reinterpret_cast<gpu::StreamHandle>(&each) != stream) continue;
    if (each.is_alive) return &each;
    report(fmt::format("{}: the stream was destroyed", call));
    return nullptr;
  }
  report(fmt::format("{}: no such stream", call));
  return nullptr;
}

RecordingDriver::EventState* RecordingDriver::alive(gpu::EventHandle event, const char* call) {
  for (EventState& each : events_) {
    if (reinterpret_cast<gpu::EventHandle>(&each) != event) continue;
    if (each.is_alive) return &each;
    report(fmt::format("{}: the event was destroyed", call));
    return nullptr;
  }
  report(fmt::format("{}: no such event", call));
  return nullptr;
}

gpu::StreamHandle RecordingDriver::create_stream() {
  const std::lock_guard lock(mutex_);
  const std::size_t index = streams_.size();
  streams_.emplace_back().index = index;
  return reinterpret_cast<gpu::StreamHandle>(&streams_.back());
}

void RecordingDriver::destroy(gpu::StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  StreamState* const found = alive(stream, "destroy");
  if (found == nullptr) return;
  if (!found->pieces.empty()) report("destroy: the stream has work queued");
  found->is_alive = false;
}

gpu::EventHandle RecordingDriver::create_event() {
  const std::lock_guard lock(mutex_);
  return reinterpret_cast<gpu::EventHandle>(&events_.emplace_back());
}

void RecordingDriver::destroy(gpu::EventHandle event) {
  const std::lock_guard lock(mutex_);
  if (EventState* const found = alive(event, "destroy")) found->is_alive = false;
}

void RecordingDriver::record(gpu::EventHandle event, gpu::StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  EventState* const what = alive(event, "record");
  StreamState* const where = alive(stream, "record");
  if (what == nullptr || where == nullptr || broken_) return;
  not_captured(*where, "record", false);
  Piece piece;
  piece.name = "record";
  piece.records = what;
  piece.generation = ++what->recorded;
  push(*where, std::move(piece));
}

void RecordingDriver::wait(gpu::StreamHandle stream, gpu::EventHandle event) {
  const std::lock_guard lock(mutex_);
  EventState* const what = alive(event, "wait");
  StreamState* const where = alive(stream, "wait");
  if (what == nullptr || where == nullptr || broken_) return;
  not_captured(*where, "wait", false);
  if (what->recorded == 0) {
    report("wait: the event was never recorded");
    return;
  }
  Piece piece;
  piece.name = "wait";
  piece.waits_for = what;
  piece.generation = what->recorded;
  push(*where, std::move(piece));
}

bool RecordingDriver::is_done(gpu::EventHandle event) {
  const std::lock_guard lock(mutex_);
  not_while_capturing("is_done");
  EventState* const found = alive(event, "is_done");
  if (found == nullptr || broken_) return true;
  if (found->recorded == 0) report("is_done: the event was never recorded");
  if (found->done < found->recorded) {
    // It is done some time, whether anybody waits or not.
    if (StreamState* const stream = stream_that_records(*found, found->recorded)) {
      if (StreamState* const next = runnable_for(*stream)) run_front(*next);
      device_.close();
    }
    return false;
  }
  know(found->clocks[found->done]);
  return true;
}

void RecordingDriver::synchronize(gpu::EventHandle event) {
  const std::lock_guard lock(mutex_);
  not_while_capturing("synchronize");
  EventState* const found = alive(event, "synchronize");
  if (found == nullptr || broken_) return;
  if (found->recorded == 0) {
    report("synchronize: the event was never recorded");
    return;
  }
  const std::uint64_t generation = found->recorded;
  if (StreamState* const stream = stream_that_records(*found, generation)) {
    run_until(*stream, [=] { return found->done >= generation; });
  }
  know(found->clocks[generation]);
}

void RecordingDriver::synchronize(gpu::StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  not_while_capturing("synchronize");
  StreamState* const found = alive(stream, "synchronize");
  if (found == nullptr || broken_) return;
  run_until(*found, [=] { return found->pieces.empty(); });
  know(found->clock);
}

// Work.

void RecordingDriver::push(StreamState& stream, Piece piece) {
  if (&stream == captured_) {
    capture_.push_back(std::move(piece));
    return;
  }
  piece.queued_at = host_;
  stream.pieces.push_back(std::move(piece));
}

std::optional<RecordingDriver::Access> RecordingDriver::access_of(const void* first,
                                                                  std::size_t bytes, bool writes,
                                                                  const std::string& name) {
  WatchedMemory& memory = device_.has(first) ? device_ : pinned_;
  WatchedMemory::Block* const block = memory.find(first);
  if (block == nullptr) return std::nullopt;  // other memory of the host
  const std::byte* const begin = bytes_of(first);
  if (!block->is_alive) {
    report(fmt::format("{} names {}, which was freed", name, block->name()));
    return std::nullopt;
  }
  const std::byte* const end = block->data + block->bytes;
  if (begin < block->data || begin > end || bytes > static_cast<std::size_t>(end - begin)) {
    report(fmt::format("{} of {} bytes at {} leaves {}", name, bytes, begin - block->data,
                       block->name()));
    return std::nullopt;
  }
  return Access{block, begin, begin + bytes, writes};
}

// From where the host's memory is followed when the copy runs, as a device does it.
std::function<void()> RecordingDriver::copy_work(void* target, const void* source,
                                                 std::size_t bytes) {
  const bool to_host = !device_.has(target);
  const bool from_host = !device_.has(source);
  if (to_host) spoil(target, bytes);
  const std::uint64_t checksum = from_host ? checksum_of({bytes_of(source), bytes}) : 0;
  return [=, this] {
    if (from_host && checksum_of({bytes_of(source), bytes}) != checksum) {
      report("copy: the host's memory changed before it was copied");
    }
    if (to_host && !from_host) {
      if (const auto place = find_poison(source, bytes)) {
        report(fmt::format("copy: byte {} of what is read was never written", *place));
      }
    }
    std::memmove(target, source, bytes);
  };
}

void RecordingDriver::copy(gpu::StreamHandle stream, void* target, const void* source,
                           std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  StreamState* const found = alive(stream, "copy");
  if (found == nullptr || broken_) return;
  not_captured(*found, "copy", device_.has(target) && device_.has(source));
  if (bytes == 0) return;  // nothing may lie at null
  if (device_.has(source) && !device_.has(target)) log_->count_download();
  Piece piece;
  piece.name = "copy";
  bool is_right = true;
  for (const auto& [memory, writes] :
       {std::pair<const void*, bool>{source, false}, {target, true}}) {
    const auto access = access_of(memory, bytes, writes, "copy");
    if (access) piece.accesses.push_back(*access);
    is_right = is_right && (access || !(device_.has(memory) || pinned_.has(memory)));
  }
  if (is_right) piece.work = copy_work(target, source, bytes);
  push(*found, std::move(piece));
}

void RecordingDriver::zero(gpu::StreamHandle stream, void* target, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  StreamState* const found = alive(stream, "zero");
  if (found == nullptr || broken_) return;
  not_captured(*found, "zero", true);
  Piece piece;
  piece.name = "zero";
  if (!device_.has(target)) report("zero: not memory of the device");
  if (const auto access = access_of(target, bytes, true, "zero")) {
    piece.accesses.push_back(*access);
    piece.work = [=] { std::memset(target, 0, bytes); };
  }
  push(*found, std::move(piece));
}

void RecordingDriver::add_arrays(Piece& piece, const std::vector<const void*>& arrays) {
  bool is_right = true;
  for (const void* array : arrays) {
    const auto access = access_of(array, 0, false, piece.name);
    is_right = is_right && access.has_value();
    if (access) piece.accesses.push_back(*access);
  }
  if (!is_right) piece.work = nullptr;
}

void RecordingDriver::launch(gpu::StreamHandle stream, const gpu::KernelEntry& entry,
                             const gpu::Grid& grid, const void* kernel) {
  const std::lock_guard lock(mutex_);
  StreamState* const found = alive(stream, entry.name);
  if (found == nullptr || broken_) return;
  not_captured(*found, entry.name, true);
  ++launches_;
  log_->count_kernel(entry.name);
  constexpr std::int64_t kBlocksMax = (std::int64_t{1} << 31U) - 1;
  constexpr std::size_t kSharedMax = 48 * 1024;
  if (grid.blocks < 1 || grid.blocks > kBlocksMax || grid.threads < 32 || grid.threads > 1024 ||
      grid.threads % 32 != 0 || grid.threads > entry.threads_max ||
      grid.shared_bytes > kSharedMax) {
    report(fmt::format("{}: no device runs {} blocks of {} threads with {} bytes", entry.name,
                       grid.blocks, grid.threads, grid.shared_bytes));
    return;
  }
  const auto arguments =
      std::make_shared<std::vector<std::max_align_t>>(entry.bytes / sizeof(std::max_align_t) + 1);
  std::memcpy(arguments->data(), kernel, entry.bytes);
  std::vector<const void*> arrays;
  for (std::size_t i = 0; i + sizeof(void*) <= entry.bytes; i += sizeof(void*)) {
    const void* word = nullptr;
    std::memcpy(&word, bytes_of(kernel) + i, sizeof(word));
    if (device_.has(word) || pinned_.has(word)) arrays.push_back(word);
  }
  const auto order = options_.seed % 2 == 0 ? gpu::HostOrder::kUp : gpu::HostOrder::kDown;
  Piece piece;
  piece.name = entry.name;
  piece.is_kernel = true;
  piece.work = [this, entry, grid, arguments, order] {
    if (!entry.host(grid, arguments->data(), order)) {
      report(fmt::format("{}: writes beyond its shared memory", entry.name));
    }
  };
  add_arrays(piece, arrays);
  push(*found, std::move(piece));
}

void RecordingDriver::queue_call(gpu::StreamHandle stream, std::string name,
                                 const std::vector<const void*>& arrays,
                                 std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  StreamState* const found = alive(stream, name.c_str());
  if (found == nullptr || broken_) return;
  not_captured(*found, name.c_str(), true);
  if (!bound_.contains(std::this_thread::get_id())) report(name + " on a thread without a device");
  Piece piece;
  piece.name = std::move(name);
  piece.is_kernel = true;
  piece.work = std::move(work);
  std::vector<const void*> there;
  for (const void* array : arrays) {
    if (array == nullptr) continue;
    if (device_.has(array)) {
      there.push_back(array);
    } else {
      report(piece.name + " names memory that is not the device's");
      piece.work = nullptr;
    }
  }
  add_arrays(piece, there);
  push(*found, std::move(piece));
}

Result<void> RecordingDriver::check() {
  const std::lock_guard lock(mutex_);
  if (broken_) return *broken_;
  return {};
}

void RecordingDriver::bind_thread() {
  const std::lock_guard lock(mutex_);
  bound_.insert(std::this_thread::get_id());
}

void RecordingDriver::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (!broken_) broken_ = std::move(error);
}

void RecordingDriver::break_down(Error error) {
  const std::lock_guard lock(mutex_);
  broken_ = std::move(error);
  for (StreamState& stream : streams_) stream.pieces.clear();
}

}  // namespace speedo::test
