#include "base/trace.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

#include "base/descriptor.hpp"
#include "base/log.hpp"

namespace speedo {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{64} << 10U;
constexpr Instant kFlushInterval = std::chrono::seconds(1);

Instant since_1970() {
  return std::chrono::duration_cast<Instant>(std::chrono::system_clock::now().time_since_epoch());
}

double microseconds(Instant time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// Names are the program's own words and the system's thread names.
std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + "\"";
}

// The file, and what is to go into it. Thread safety: all methods from any thread.
class TraceFile : public Trace {
 public:
  TraceFile(std::string path, int fd) : path_(std::move(path)), file_(fd) {}
  ~TraceFile() override;

  Result<void> begin(const std::string& process);
  void add(const char* name, Instant start, Instant end);
  // Nothing more is written, and nobody told.
  void leave() { is_given_up_ = true; }

 private:
  bool is_first();
  void add_event(const std::string& event);
  void add_thread_name();
  Result<void> flush();
  void give_up(const Error& error);

  const std::string path_;
  const Descriptor file_;
  const long process_ = ::getpid();
  const Instant offset_ = since_1970() - steady_clock().now();
  std::mutex mutex_;
  std::set<long> threads_;  // that are named in the file
  std::string buffer_;
  std::uint64_t written_ = 0;
  Instant flushed_at_{0};
  bool is_given_up_ = false;
};

std::atomic<TraceFile*> current{nullptr};
std::mutex current_mutex;  // held while a span is added: then the trace does not end

// Whoever has the lock alone is the first, or the last; the others share it.
bool TraceFile::is_first() { return ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0; }

Result<void> TraceFile::begin(const std::string& process) {
  std::string head = ",\n";
  if (is_first()) {
    const bool is_file = ::ftruncate(file_.get(), 0) == 0 || errno == EINVAL;  // a pipe is none
    if (!is_file) {
      return Error{ErrorCode::kCannotWrite,
                   fmt::format("--trace {}: {}", path_, std::strerror(errno))};
    }
    head = "[\n";
  }
  ::flock(file_.get(), LOCK_SH);
  buffer_ =
      head + fmt::format(R"({{"name":"process_name","ph":"M","pid":{},"args":{{"name":{}}}}})",
                         process_, json_string(process));
  return flush();
}

TraceFile::~TraceFile() {
  {
    const std::lock_guard lock(current_mutex);
    current = nullptr;
  }
  const std::lock_guard lock(mutex_);
  if (!is_given_up_ && ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) buffer_ += "\n]\n";
  if (const auto flushed = flush(); !flushed) give_up(flushed.error());
}

// In one write, so that events of several processes do not mix.
Result<void> TraceFile::flush() {
  flushed_at_ = steady_clock().now();
  if (is_given_up_ || buffer_.empty()) return {};
  const ssize_t written = ::write(file_.get(), buffer_.data(), buffer_.size());
  if (written != static_cast<ssize_t>(buffer_.size())) {
    const char* const why = written < 0 ? std::strerror(errno) : "no space left on the disk";
    return Error{ErrorCode::kCannotWrite, fmt::format("--trace {}: {}", path_, why)};
  }
  written_ += buffer_.size();
  buffer_.clear();
  return {};
}

void TraceFile::give_up(const Error& error) {
  is_given_up_ = true;
  buffer_.clear();
  SPEEDO_WARN("{}; the trace ends here, training goes on", error.message);
}

void TraceFile::add_event(const std::string& event) {
  buffer_ += ",\n";
  buffer_ += event;
}

void TraceFile::add_thread_name() {
  const long thread = ::syscall(SYS_gettid);
  if (!threads_.insert(thread).second) return;
  std::array<char, 16> name{};
  ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  add_event(fmt::format(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},)"
                        R"("args":{{"name":{}}}}})",
                        process_, thread, json_string(name.data())));
}

void TraceFile::add(const char* name, Instant start, Instant end) {
  const std::lock_guard lock(mutex_);
  if (is_given_up_) return;
  add_thread_name();
  add_event(fmt::format(R"({{"name":{},"ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f}}})",
                        json_string(name), process_, ::syscall(SYS_gettid),
                        microseconds(start + offset_), microseconds(end - start)));
  const bool is_due = steady_clock().now() - flushed_at_ > kFlushInterval;
  if (buffer_.size() < kBufferBytes && !is_due) return;
  if (const auto flushed = flush(); !flushed) return give_up(flushed.error());
  if (written_ < kTraceBytesMax) return;
  give_up({ErrorCode::kFull, fmt::format("--trace {}: {} MiB are written, which is what viewers "
                                         "can show", path_, kTraceBytesMax >> 20U)});
}

}  // namespace

Result<std::unique_ptr<Trace>> Trace::start(const std::string& file, const std::string& process) {
  if (file.empty()) return std::unique_ptr<Trace>();
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) {
    return Error{ErrorCode::kCannotWrite,
                 fmt::format("--trace {}: {}; give a file in a folder that can be written", file,
                             std::strerror(errno))};
  }
  auto trace = std::make_unique<TraceFile>(file, fd);
  if (auto begun = trace->begin(process); !begun) {
    trace->leave();
    return std::move(begun).error();
  }
  const std::lock_guard lock(current_mutex);
  SPEEDO_ASSERT(current == nullptr);
  current = trace.get();
  return std::unique_ptr<Trace>(std::move(trace));
}

bool is_tracing() { return current.load(std::memory_order_relaxed) != nullptr; }

void trace_span(const char* name, Instant start, Instant end) {
  const std::lock_guard lock(current_mutex);
  if (TraceFile* const file = current) file->add(name, start, end);
}

}  // namespace speedo
