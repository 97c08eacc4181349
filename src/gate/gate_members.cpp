// The connections of a gate's loop: how they come, fare and go.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>

#include "base/log.hpp"
#include "gate/gate_loop.hpp"

namespace speedo {
namespace {

constexpr int kAcceptedAtOnce = 16;
// Each may cost a key exchange and a signature, on the thread that carries all messages.
constexpr int kProofsAtOnce = 4;
constexpr std::chrono::milliseconds kShortageTime{100};

// Nothing is proved yet, or it was wrong.
bool is_unproved(const GateLink& link) {
  return link.step() == Admission::Step::kPreamble || link.step() == Admission::Step::kEnded;
}

}  // namespace

void Gate::Loop::accept_some(Instant now) {
  const std::uint64_t enough = proofs_ + kProofsAtOnce;  // of those that may have to make room
  for (int i = 0; i < kAcceptedAtOnce && proofs_ < enough && listener_ && accept_one(now); ++i) {
  }
}

// Whether there may be more.
bool Gate::Loop::accept_one(Instant now) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  const int accepted = ::accept4(listener_->get(), reinterpret_cast<sockaddr*>(&address), &size,
                                 SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (accepted >= 0) {
    welcome(std::make_unique<Descriptor>(accepted), address_of(address), now);
    return true;
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
  if (errno == EINTR || errno == ECONNABORTED) return true;
  if (errno == EMFILE || errno == ENFILE) {
    shed_one(now);
  } else {
    rest_from_accepting(now);
  }
  return false;
}

// For a moment, since epoll would tell of the waiting connection again and again.
void Gate::Loop::rest_from_accepting(Instant now) {
  accepts_again_ = now + kShortageTime;
  watch_listener();
  back_.notify_one();  // the loop may be waiting for longer
}

void Gate::Loop::accept_again(Instant now) {
  accepts_again_.reset();
  if (!listener_) return;
  watch_listener();
  accept_some(now);
}

void Gate::Loop::watch_listener() {
  epoll_event event{};
  event.events = accepts_again_ ? 0U : std::uint32_t{EPOLLIN};
  event.data.u64 = kListenerPlace;
  ::epoll_ctl(epoll_->get(), EPOLL_CTL_MOD, listener_->get(), &event);
}

// Where descriptors are short, a connection that nobody takes would wake the loop for ever: it is
// taken with the one in reserve, and closed.
void Gate::Loop::shed_one(Instant now) {
  displace([](const Member& member) { return is_unproved(member.connection->link()); }, 0, now);
  reserve_.reset();
  const int accepted = ::accept4(listener_->get(), nullptr, nullptr, SOCK_CLOEXEC);
  if (accepted >= 0) ::close(accepted);
  reserve_ = std::make_unique<Descriptor>(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  // Another thread may have taken the place meanwhile.
  if (accepted < 0) rest_from_accepting(now);
  const std::lock_guard lock(mutex_);
  counts_.connections += accepted >= 0 ? 1U : 0U;
  counts_.displaced += accepted >= 0 ? 1U : 0U;
}

// Displaces the oldest if there are more than `most` of them.
void Gate::Loop::displace(const std::function<bool(const Member&)>& is_one, std::size_t most,
                          Instant now) {
  const auto counted = [&](const auto& each) { return each.second.came && is_one(each.second); };
  const auto are_too_many = [&] {
    return static_cast<std::size_t>(std::count_if(members_.begin(), members_.end(), counted)) >
           most;
  };
  while (are_too_many()) {
    // One that has said its word meanwhile is none of them any more: the next one is looked at.
    const std::uint64_t oldest = std::find_if(members_.begin(), members_.end(), counted)->first;
    service(oldest, now);
    const auto found = members_.find(oldest);
    if (found == members_.end() || !counted(*found)) continue;
    if (!found->second.end_noted) {
      note(&GateCounts::displaced, found->second, "made room for newer connections", now);
    }
    members_.erase(found);
    return;
  }
}

void Gate::Loop::make_room(const std::string& host, Instant now) {
  const auto unproved = [](const Member& member) {
    return is_unproved(member.connection->link());
  };
  displace([&](const Member& member) {
    return unproved(member) && member.connection->address().host == host;
  }, limits_.unproved_of_address - 1, now);
  displace(unproved, limits_.unproved - 1, now);
  displace([](const Member& member) {
    return member.connection->link().step() == Admission::Step::kHandshake;
  }, limits_.shaking - 1, now);
}

void Gate::Loop::welcome(std::unique_ptr<Descriptor> socket, PeerAddress address, Instant now) {
  make_room(address.host, now);
  {
    const std::lock_guard lock(mutex_);
    counts_.connections += 1;
  }
  send_at_once(socket->get());
  std::string greeting;
  auto admission = Admission::listen(credentials(), options_.protocol, greeting);
  if (!admission) {
    SPEEDO_ERROR("Gate: {}", admission.error().message);
    return;
  }
  GateLink link(std::move(admission).value(), std::move(greeting), rules_of(false), now);
  Member member;
  member.connection =
      std::make_unique<GateConnection>(std::move(socket), std::move(link), std::move(address));
  member.came = true;
  enter(std::move(member), now);
}

void Gate::Loop::enter(Member member, Instant now) {
  const std::uint64_t id = next_id_++;
  members_.emplace(id, std::move(member));
  service(id, now);
}

// What epoll tells of a member. It does so again as long as what has come is not read.
void Gate::Loop::attend(std::uint64_t place, Instant now) {
  const std::uint64_t id = place / 2;
  const auto found = members_.find(id);
  if (found == members_.end()) return;
  Member& member = found->second;
  if (!member.came || member.let_in) {
    using Ends = GateConnection::Ends;
    return service(id, now, place % 2 == 0 ? Ends::kNetwork : Ends::kLocal);
  }
  if (!std::exchange(member.waits, true)) waiting_.push_back(id);
}

// Who has waited longest comes first.
void Gate::Loop::hear_waiting(Instant now) {
  const std::uint64_t enough = proofs_ + kProofsAtOnce;
  while (!waiting_.empty() && proofs_ < enough) {
    const std::uint64_t id = waiting_.front();
    waiting_.pop_front();
    const auto found = members_.find(id);
    if (found == members_.end()) continue;
    found->second.waits = false;
    service(id, now, GateConnection::Ends::kNetwork);
  }
}

void Gate::Loop::service(std::uint64_t id, Instant now, GateConnection::Ends ends) {
  const auto found = members_.find(id);
  if (found == members_.end()) return;
  Member& member = found->second;
  const bool is_new = member.came && !member.let_in;
  bool over = member.connection->service(now, ends);
  if (is_new && member.connection->link().step() != Admission::Step::kPreamble) ++proofs_;
  if (member.came && !member.let_in && member.connection->link().was_admitted()) {
    admit(member, now);
    over = member.connection->service(now);
  }
  note_end(member, now);
  if (!over) return watch(id, member);
  if (member.alive) *member.alive = false;
  members_.erase(found);
}

// Gives a peer that was let in a connection with CAF.
void Gate::Loop::admit(Member& member, Instant now) {
  member.let_in = true;
  const auto before = admitted_pacer_.admit(now);
  const std::string others =
      before.value_or(0) == 0 ? "" : fmt::format(" (and {} others before it)", *before);
  auto pair = make_socket_pair();
  if (!pair) {
    if (before) SPEEDO_ERROR("Gate: {}{}", pair.error().message, others);
    member.connection->link().network_ended();
    return;
  }
  const GateLink& link = member.connection->link();
  const std::string name = link.peer().name.empty() ? "" : " '" + link.peer().name + "'";
  {
    const std::lock_guard lock(mutex_);
    counts_.admitted += 1;
  }
  if (before) {
    SPEEDO_INFO("Gate: {}{} at {} is let in, by {}{}", name_of(link.peer().role), name,
                member.connection->address().text, name_of(credentials()->mode()), others);
  }
  member.connection->give_local(std::move(pair->gate));
  arrive_(std::move(pair->caf));
}

// Tells epoll what to wait for, where that has changed. Of a socket that nothing is wanted of it
// would tell the end again and again.
void Gate::Loop::watch(std::uint64_t id, Member& member) {
  const auto set = [this](int socket, std::uint64_t place, std::uint32_t wanted,
                          std::uint32_t& known) {
    if (known == wanted) return;
    epoll_event event{};
    event.events = wanted;
    event.data.u64 = place;
    const int operation = wanted == 0 ? EPOLL_CTL_DEL : known == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    ::epoll_ctl(epoll_->get(), operation, socket, &event);
    known = wanted;
  };
  GateConnection& connection = *member.connection;
  set(connection.network(), 2 * id, connection.network_interest(), member.network_interest);
  if (connection.has_local()) {
    set(connection.local(), 2 * id + 1, connection.local_interest(), member.local_interest);
  }
}

// Counts a peer that was not let in, or was cut, once.
void Gate::Loop::note_end(Member& member, Instant now) {
  const GateLink& link = member.connection->link();
  if (!link.fault() || member.end_noted) return;
  member.end_noted = true;
  const Error& fault = *link.fault();
  if (link.was_cut()) return note(&GateCounts::cut, member, "was cut: " + fault.message, now);
  if (fault.code == ErrorCode::kTimeout) return note(&GateCounts::late, member, fault.message, now);
  const bool is_stranger = link.refusal() == Refusal::kNone;
  note(is_stranger ? &GateCounts::strangers : &GateCounts::refused, member, fault.message, now);
}

void Gate::Loop::note(std::uint64_t GateCounts::* count, const Member& member,
                      std::string_view why, Instant now) {
  {
    const std::lock_guard lock(mutex_);
    counts_.*count += 1;
  }
  const auto before = pacer_.admit(now);
  if (!before) return;
  SPEEDO_WARN("Gate: {} is turned away: {}{}", member.connection->address().text, why,
              *before == 0 ? "" : fmt::format(" (and {} others before it)", *before));
}

}  // namespace speedo
