#include "gate/gate_loop.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/thread_name.hpp>

#include "base/log.hpp"
#include "base/patient_output.hpp"

namespace speedo {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLookInterval{100};
constexpr milliseconds kLentInterval{1000};
constexpr seconds kReloadInterval{1};
constexpr seconds kWarningInterval{60};

std::unique_ptr<Descriptor> open_reserve() {
  return std::make_unique<Descriptor>(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

Result<std::unique_ptr<Gate::Loop>> Gate::Loop::create(GateOptions options) {
  FileStamps stamps(options.files);  // of before, so that no change is missed
  SPEEDO_ASSIGN(auto credentials, GateCredentials::load(options.files, options.role));
  std::unique_ptr<Loop> loop(new Loop(std::move(options), std::move(credentials)));
  loop->stamps_ = std::move(stamps);
  SPEEDO_TRY(loop->open());
  return loop;
}

Gate::Loop::Loop(GateOptions options, std::shared_ptr<const GateCredentials> credentials)
    : options_(std::move(options)),
      credentials_(std::move(credentials)),
      silence_(options_.silence),
      limits_(limits_here()) {}

Result<void> Gate::Loop::open() {
  epoll_ = std::make_unique<Descriptor>(::epoll_create1(EPOLL_CLOEXEC));
  wake_ = std::make_unique<Descriptor>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  reserve_ = open_reserve();
  if (epoll_->get() < 0 || wake_->get() < 0 || reserve_->get() < 0) {
    return Error{ErrorCode::kFull, std::string("no descriptor left for connections: ") +
                                       std::strerror(errno)};
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakePlace;
  ::epoll_ctl(epoll_->get(), EPOLL_CTL_ADD, wake_->get(), &event);
  warned_ = steady_clock().now();
  thread_ = std::thread([this] {
    name_thread("gate");
    run();
  });
  return {};
}

Gate::Loop::~Loop() {
  if (!thread_.joinable()) return;
  post([this] { ends_at_ = steady_clock().now() + kGateFarewell; });
  thread_.join();
  if (counts_.turned_away() > 0) SPEEDO_INFO("Gate: {}", to_text(counts_));
}

std::shared_ptr<const GateCredentials> Gate::Loop::credentials() const {
  const std::lock_guard lock(mutex_);
  return credentials_;
}

GateCounts Gate::Loop::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

GateLink::RulesOf Gate::Loop::rules_of(bool from_server) const {
  return [this, from_server](const AdmittedPeer& peer) {
    return BaspRules{.from_server = from_server,
                     .application = options_.application,
                     .messages = options_.messages(peer.role)};
  };
}

void Gate::Loop::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
  }
  const std::uint64_t one = 1;
  (void)!::write(wake_->get(), &one, sizeof(one));
}

void Gate::Loop::bear_silence(milliseconds silence) {
  silence_ = silence;
  post([] {});  // the loop may be waiting for ever
}

void Gate::Loop::do_posted() {
  std::uint64_t count = 0;
  (void)!::read(wake_->get(), &count, sizeof(count));
  std::vector<std::function<void()>> works;
  {
    const std::lock_guard lock(mutex_);
    works.swap(posted_);
  }
  for (const auto& work : works) work();
}

void Gate::Loop::listen(ListeningSocket socket, Arrive arrive) {
  // A std::function can only hold what can be copied.
  const auto held = std::make_shared<ListeningSocket>(std::move(socket));
  post([this, held, arrive = std::move(arrive)] {
    SPEEDO_ASSERT(listener_ == nullptr);
    listener_ = std::move(held->socket);
    arrive_ = arrive;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kListenerPlace;
    ::epoll_ctl(epoll_->get(), EPOLL_CTL_ADD, listener_->get(), &event);
  });
}

void Gate::Loop::stop_listening() {
  std::promise<void> done;
  post([this, &done] {
    listener_.reset();
    arrive_ = nullptr;
    // Those that were not let in yet never will be.
    std::erase_if(members_, [](const auto& member) {
      return member.second.came && !member.second.let_in;
    });
    done.set_value();
  });
  done.get_future().get();
}

std::shared_ptr<const std::atomic<bool>> Gate::Loop::adopt(
    std::unique_ptr<GateConnection> connection) {
  const auto member = std::make_shared<Member>();
  member->connection = std::move(connection);
  const auto alive = std::make_shared<std::atomic<bool>>(true);
  member->alive = alive;
  post([this, member] { enter(std::move(*member), steady_clock().now()); });
  return alive;
}

// Until the end, and then until what is to be said has left.
void Gate::Loop::run() {
  PatientOutput::never_wait_on_this_thread();
  std::unique_lock turn(turn_);
  while (!is_over()) {
    if (is_lent_) {
      back_.wait_for(turn, patience() < 0 ? kLentInterval : milliseconds{patience()});
      look_around(steady_clock().now());
    } else {
      serve_within(patience(), turn);
    }
    reload(turn);
  }
  members_.clear();
}

bool Gate::Loop::is_over() const {
  return ends_at_ && (members_.empty() || steady_clock().now() >= *ends_at_);
}

// While it waits another thread may serve the same events: what they tell of may be gone.
void Gate::Loop::serve_within(int milliseconds, std::unique_lock<std::mutex>& turn) {
  std::array<epoll_event, 64> events;
  turn.unlock();
  const int found = ::epoll_wait(epoll_->get(), events.data(), static_cast<int>(events.size()),
                                 milliseconds);
  turn.lock();
  const Instant now = steady_clock().now();
  for (int i = 0; i < found; ++i) {
    const std::uint64_t place = events[static_cast<std::size_t>(i)].data.u64;
    if (place == kWakePlace) {
      do_posted();
    } else if (place == kListenerPlace) {
      accept_some(now);
    } else {
      attend(place, now);
    }
  }
  hear_waiting(now);
  look_around(now);
}

void Gate::Loop::serve() {
  std::unique_lock turn(turn_);
  serve_within(0, turn);
}

void Gate::Loop::lend() {
  std::promise<void> done;
  post([this, &done] {
    is_lent_ = true;
    done.set_value();
  });
  done.get_future().get();
}

void Gate::Loop::take_back() {
  {
    const std::lock_guard turn(turn_);
    is_lent_ = false;
  }
  back_.notify_one();
}

// In milliseconds; -1: until something happens.
int Gate::Loop::patience() const {
  const auto waits = [](const auto& member) {
    return member.second.connection->deadline().has_value();
  };
  if (ends_at_ || accepts_again_ || std::any_of(members_.begin(), members_.end(), waits)) {
    return static_cast<int>(kLookInterval.count());
  }
  const bool has_files = credentials()->mode() != GateMode::kOpen;
  const bool minds_silence = silence_.load().count() != 0;
  return has_files || options_.warns || minds_silence ? 1000 : -1;
}

void Gate::Loop::look_around(Instant now) {
  if (now - looked_around_ < kLookInterval && !ends_at_) return;
  looked_around_ = now;
  std::vector<std::uint64_t> due;
  for (auto& [id, member] : members_) {
    const auto deadline = member.connection->deadline();
    if (deadline && now >= *deadline) due.push_back(id);
  }
  for (const std::uint64_t id : due) service(id, now);
  end_silent(now);
  if (accepts_again_ && now >= *accepts_again_) accept_again(now);
  if (options_.warns && now - warned_ >= kWarningInterval) {
    warned_ = now;
    SPEEDO_WARN("--insecure: whoever reaches the master's port can join, and read along");
  }
}

// What has come by now counts: this process may have been stopped, or busy.
void Gate::Loop::end_silent(Instant now) {
  const milliseconds silence = silence_;
  if (silence.count() == 0) return;
  const auto is_silent = [&](const auto& each) {
    return each.second.connection->link().is_silent(now, silence);
  };
  std::vector<std::uint64_t> silent;
  for (const auto& each : members_) {
    if (is_silent(each)) silent.push_back(each.first);
  }
  for (const std::uint64_t id : silent) {
    service(id, now);
    const auto found = members_.find(id);
    if (found == members_.end() || !is_silent(*found)) continue;
    SPEEDO_WARN("Gate: {} has said nothing for {} s and is given up",
                found->second.connection->address().text,
                static_cast<double>(silence.count()) / 1000);
    if (found->second.alive) *found->second.alive = false;
    members_.erase(found);
  }
}

void Gate::Loop::reload_now() {
  if (credentials()->mode() != GateMode::kOpen) read_files_again();
}

// Where the files lie a look at them may take for ever: another thread that serves does not wait
// for it, and sees to deadlines whenever something comes.
void Gate::Loop::reload(std::unique_lock<std::mutex>& turn) {
  const Instant now = steady_clock().now();
  if (now - reloaded_ < kReloadInterval || credentials()->mode() == GateMode::kOpen) return;
  reloaded_ = now;
  turn.unlock();
  read_files_again();
  turn.lock();
}

Result<std::shared_ptr<const GateCredentials>> Gate::Loop::load_again(
    const FileStamps& stamps) const {
  if (stamps.not_a_file().empty()) return GateCredentials::load(options_.files, options_.role);
  return Error{ErrorCode::kConfig,
               fmt::format("'{}' is no regular file; what is none is read at the start only",
                           stamps.not_a_file())};
}

void Gate::Loop::read_files_again() {
  std::unique_lock reading(reading_);
  FileStamps stamps(options_.files);
  if (stamps == stamps_) return;
  auto loaded = load_again(stamps);
  if (!loaded) {
    // Tried again: what was in the way may go while the files stay as they are.
    if (refused_ == stamps) return;
    refused_ = std::move(stamps);
    reading.unlock();
    SPEEDO_ERROR("Gate: the credentials have changed and cannot be used, so the old ones stay: {}",
                 loaded.error().message);
    return;
  }
  stamps_ = std::move(stamps);
  refused_.reset();
  {
    const std::lock_guard lock(mutex_);
    credentials_ = std::move(loaded).value();
  }
  reading.unlock();
  SPEEDO_INFO("Gate: the credentials have changed and were read again");
}

}  // namespace speedo
