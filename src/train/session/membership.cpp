#include "train/session/membership.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/ranges.h>

#include <speedo/base/assert.hpp>

#include "train/note_text.hpp"

namespace speedo {
namespace {

// "gpu:1 NVIDIA H200, tf32" is of the kind "gpu NVIDIA H200, tf32".
std::string kind_of(const std::string& device) {
  constexpr std::string_view kGpu = "gpu";
  std::string kind = clip_text(device);
  if (!kind.starts_with("gpu:")) return kind;
  const std::size_t end =
      std::min(kind.find_first_not_of("0123456789", kGpu.size() + 1), kind.size());
  return kind.erase(kGpu.size(), end - kGpu.size());
}

}  // namespace

void Membership::restore(std::uint64_t next_worker, std::uint64_t joined,
                         std::optional<bool> emulated) {
  SPEEDO_ASSERT(members_.empty());
  next_worker_ = next_worker;
  joined_ = joined_before_ = joined;
  emulated_ = emulated;
}

std::vector<WorkerId> Membership::earlier_lives(const master_event::Hello& event) const {
  const HelloMessage& hello = event.message;
  const bool has_uuid = hello.uuid_high != 0 || hello.uuid_low != 0;
  std::vector<WorkerId> earlier;
  for (const auto& [id, member] : members_) {
    const bool same =
        has_uuid && member.uuid_high == hello.uuid_high && member.uuid_low == hello.uuid_low;
    if (same || member.peer == event.peer) earlier.push_back(id);
  }
  return earlier;
}

bool Membership::turns_away(const master_event::Hello& event, Instant now, SessionCommands& out) {
  if (event.message.protocol != kProtocolVersion) {
    refuse_protocol(event, out);
    return true;
  }
  if (refuses_mixture(event, out) || refuses_device(event, out)) return true;
  const std::string host = host_of(clip_text(event.message.name));
  if (const Instant left = quarantine_.left(host, now); left.count() > 0) {
    quarantined_ += 1;
    out.refuse(event.peer, ErrorCode::kUnavailable,
               fmt::format("workers of {} came and went without finishing a run; it is kept out "
                           "for {:.1f} s more",
                           host, std::chrono::duration<double>(left).count()));
    return true;
  }
  if (config_.workers_max != 0 && members_.size() >= config_.workers_max) {
    const bool is_fixed = config_.workers_min == config_.workers_max;
    const char* const why = is_fixed
                                ? "exactly as many as it takes (--deterministic, or --workers N:N)"
                                : "the most it takes (--workers MIN:MAX)";
    out.refuse(event.peer, ErrorCode::kUnavailable,
               fmt::format("this job has its {}, {}", count_workers(config_.workers_max), why));
    return true;
  }
  return false;
}

void Membership::refuse_protocol(const master_event::Hello& event, SessionCommands& out) const {
  const std::string name = clip_text(event.message.name);
  out.note(true, "refused worker {}: protocol {} instead of {}", name, event.message.protocol,
           kProtocolVersion);
  out.refuse(event.peer, ErrorCode::kMismatch,
             fmt::format("worker {} speaks protocol {}, this master speaks {}; install the same "
                         "version of SpeeDO on both",
                         name, event.message.protocol, kProtocolVersion));
}

// What the job has learned so far is worth nothing, or would be from then on.
bool Membership::refuses_mixture(const master_event::Hello& event, SessionCommands& out) const {
  std::optional<bool> others = emulated_;
  if (!others && !members_.empty()) others = members_.begin()->second.emulated;
  const bool emulated = event.message.device == kEmulatedDevice;
  if (!others || *others == emulated) return false;
  const std::string name = clip_text(event.message.name);
  const std::string reason =
      emulated
          ? fmt::format("worker {} has --emulate-compute, and this job's workers compute: what "
                        "they have learned would be lost; leave it out",
                        name)
          : fmt::format("worker {} computes, and this job's workers have --emulate-compute: its "
                        "weights mean nothing; give all of them the flag, or start another job",
                        name);
  out.note(true, "refused: {}", reason);
  out.refuse(event.peer, ErrorCode::kMismatch, reason);
  return true;
}

// Bits that are to be equal are not, on devices that round differently.
bool Membership::refuses_device(const master_event::Hello& event, SessionCommands& out) const {
  const std::string device = kind_of(event.message.device);
  if (device == kEmulatedDevice) return false;
  std::optional<std::string> others;
  if (config_.same_devices) {
    others = device_;
    if (!others && !members_.empty()) others = members_.begin()->second.device;
  }
  const std::string name = clip_text(event.message.name);
  std::string reason;
  if (others && *others != device) {
    reason = fmt::format(
        "worker {} computes on: {}; this job's other workers on: {}. With "
        "--deterministic all need the same kind of device and --precision",
        name, device, *others);
  } else if (!config_.device.empty() && kind_of(config_.device) != device) {
    reason = fmt::format(
        "worker {} computes on: {}; this master on: {}. They round the products "
        "of factors differently (--replicated): start the master with "
        "--no-factors, or all on the same kind of device",
        name, device, kind_of(config_.device));
  }
  if (reason.empty()) return false;
  out.note(true, "refused: {}", reason);
  out.refuse(event.peer, ErrorCode::kMismatch, reason);
  return true;
}

void Membership::admit(const master_event::Hello& event, Instant now, SessionCommands& out) {
  SPEEDO_ASSERT(earlier_lives(event).empty());
  SPEEDO_ASSERT(config_.workers_max == 0 || members_.size() < config_.workers_max);
  const WorkerId id{next_worker_++};
  Member& member = members_[id];
  member.peer = event.peer;
  member.name = clip_text(event.message.name);
  member.uuid_high = event.message.uuid_high;
  member.uuid_low = event.message.uuid_low;
  member.emulated = event.message.device == kEmulatedDevice;
  member.device = kind_of(event.message.device);
  member.heard = now;
  peers_[event.peer] = id;
  SPEEDO_ASSERT(peers_.size() == members_.size());
  out.add(master_command::SendWelcome{event.peer,
                                      {.worker = id.value,
                                       .store = config_.store.text(),
                                       .job = config_.job,
                                       .model_high = config_.model.high,
                                       .model_low = config_.model.low,
                                       .term = config_.term,
                                       .memory = config_.memory,
                                       .silence_ms = silence_ms_of(config_)}});
}

bool Membership::make_ready(WorkerId id, const ReadyMessage& message, SessionCommands& out) {
  Member& member = members_.at(id);
  SPEEDO_ASSERT(!member.ready);
  const Digest model{message.model_high, message.model_low};
  if (model != config_.model) {
    const std::string reason = fmt::format(
        "worker {} has built the model {}, this master's is {}; use the same version of "
        "SpeeDO and the same data shapes on both",
        member.name, to_string(model), to_string(config_.model));
    out.note(true, "refused: {}", reason);
    out.refuse(member.peer, ErrorCode::kMismatch, reason);
    return false;
  }
  member.ready = true;
  last_failure_.clear();
  if (member.emulated && ready_count_ == 0) {
    out.note(true, "the workers of this job only emulate computing: its weights mean nothing");
  }
  ready_count_ += 1;
  joined_ += 1;
  SPEEDO_ASSERT(ready_count_ <= members_.size());
  out.note(false, "worker {} joined; {} alive, {} joined so far", member.name, ready_count_,
           joined_);
  return true;
}

void Membership::finished_run(WorkerId id) {
  Member& member = members_.at(id);
  member.finished = true;
  emulated_ = member.emulated;
  device_ = member.device;
  quarantine_.finished(host_of(member.name));
}

Membership::Member Membership::remove(WorkerId id, Departure departure, Instant now,
                                      SessionCommands& out) {
  const auto found = members_.find(id);
  SPEEDO_ASSERT(found != members_.end());
  SPEEDO_ASSERT(at(found->second.peer) == id);
  Member member = std::move(found->second);
  members_.erase(found);
  peers_.erase(member.peer);
  SPEEDO_ASSERT(peers_.size() == members_.size());
  if (departure == Departure::kFlap && !member.finished) {
    const std::string host = host_of(member.name);
    if (const auto wait = quarantine_.gone(host, now)) {
      out.note(true, "workers of {} come and go without finishing a run; it is kept out for {} s",
               host, whole_seconds(*wait));
    }
  }
  SPEEDO_ASSERT(member.ready || !member.known);
  if (member.ready) ready_count_ -= 1;
  return member;
}

std::optional<WorkerId> Membership::sender(PeerId peer, std::uint64_t claimed, Instant now) {
  const auto known = at(peer);
  if (!known || known->value != claimed) return std::nullopt;
  members_.at(*known).heard = now;
  return known;
}

std::optional<WorkerId> Membership::at(PeerId peer) const {
  const auto known = peers_.find(peer);
  if (known == peers_.end()) return std::nullopt;
  return known->second;
}

const Membership::Member* Membership::find(WorkerId id) const {
  const auto found = members_.find(id);
  return found == members_.end() ? nullptr : &found->second;
}

Joined Membership::introduce(WorkerId id) {
  Member& member = members_.at(id);
  SPEEDO_ASSERT(member.ready && !member.known);
  member.known = true;
  return {{id}, {member.name}};
}

Joined Membership::introduce_all() {
  Joined joined;
  for (auto& [id, member] : members_) {
    if (!member.ready) continue;
    SPEEDO_ASSERT(!member.known);
    member.known = true;
    joined.workers.push_back(id);
    joined.names.push_back(member.name);
  }
  return joined;
}

void Membership::strategy_is_new() {
  for (auto& [id, member] : members_) member.known = false;
}

void Membership::could_not_work(WorkerId id, const std::string& reason) {
  last_failure_ = fmt::format("{} could not work: {}", members_.at(id).name, reason);
}

void Membership::ignore(PeerId peer, std::string_view what, SessionCommands& out) {
  ignore();
  out.note(false, "ignored a {} of connection {}: duplicate, late, or its sender is not admitted",
           what, peer.value);
}

void Membership::note_groups(const std::vector<std::vector<std::string>>& groups,
                             SessionCommands& out) const {
  if (groups.empty()) return;
  std::set<std::string> listed;
  for (const auto& group : groups) listed.insert(group.begin(), group.end());
  std::string unlisted;
  for (const auto& [id, member] : members_) {
    if (!member.ready) continue;
    if (!listed.contains(member.name) && !listed.contains(host_of(member.name))) {
      unlisted += " " + member.name;
    }
  }
  note_absent("groups list", listed, out);
  if (!unlisted.empty()) out.note(true, "workers that no group lists:{}", unlisted);
}

void Membership::note_absent(std::string_view who_names, const std::set<std::string>& names,
                             SessionCommands& out) const {
  std::set<std::string> absent = names;
  for (const auto& [id, member] : members_) {
    if (!member.ready) continue;
    absent.erase(member.name);
    absent.erase(host_of(member.name));
  }
  if (absent.empty()) return;
  out.note(true, "{} workers that are not here: {}", who_names, fmt::join(absent, " "));
}

void Membership::show(MasterProgress& progress) const {
  progress.workers_alive = ready_count_;
  progress.workers_joined = joined_;
  progress.worker_ids = next_worker_;
  progress.ignored = ignored_;
  progress.quarantined = quarantined_;
}

}  // namespace speedo
