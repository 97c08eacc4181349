// Nodes and connections. A connection has two sides; each learns by a message that the other has
// closed its own, or by silence.

#include "sim/world.hpp"

#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo::sim {
namespace {

// Control messages are a few dozen bytes; with CAF's and TCP's framing:
constexpr std::size_t kMessageBytes = 256;
constexpr Instant kRefusalTime = std::chrono::milliseconds(1);

}  // namespace

World::~World() = default;

MasterNode& World::start_master() {
  masters_.push_back(std::make_unique<MasterNode>(*this, NodeId{next_node_++}));
  return *masters_.back();
}

WorkerNode& World::start_worker(const WorkerConfig& config, WorkerWork& work) {
  workers_.push_back(std::make_unique<WorkerNode>(*this, NodeId{next_node_++}, config, work));
  WorkerNode& worker = *workers_.back();
  worker.process().soon([&worker] { worker.tick(); });
  return worker;
}

// What is asked of a name that nobody has is refused at once; a master that does not answer costs
// the whole time-out.
void World::connect(WorkerNode& worker) {
  const std::uint64_t attempt = ++worker.attempt_;
  worker.connecting_ = true;
  worker.orders_ = {};
  if (worker.link_) {
    const LinkPtr old = std::move(worker.link_);
    worker.link_ = nullptr;
    close_at_worker(old, "dropped", true);
  }
  const auto fail = [&worker, attempt](const char* reason) {
    if (!worker.connecting_ || worker.attempt_ != attempt) return;
    worker.connecting_ = false;
    worker.take(worker_event::ConnectFailed{reason});
  };
  MasterNode* master = named_master_;
  if (master == nullptr || !master->process().alive()) {
    worker.process().after(kRefusalTime, [fail] { fail("connection refused"); });
    return;
  }
  worker.process().after(kStoreConnectTimeout, [fail] { fail("no answer"); });
  network_.carry(worker.id(), master->id(), kMessageBytes, [this, &worker, attempt, master] {
    master->process().here([this, &worker, attempt, master] { accept(worker, attempt, *master); });
  });
}

void World::accept(WorkerNode& worker, std::uint64_t attempt, MasterNode& master) {
  auto link = std::make_shared<Link>(Link{PeerId{next_peer_++}, &master, &worker});
  links_.emplace(link->id.value, link);
  network_.carry(master.id(), worker.id(), kMessageBytes, [this, link, attempt] {
    WorkerNode& target = *link->worker;
    target.process().here([this, link, attempt, &target] {
      if (!target.connecting_ || target.attempt_ != attempt) {
        if (target.link_ != link) close_at_worker(link, "came too late", true);
        return;
      }
      target.connecting_ = false;
      target.link_ = link;
      target.take(worker_event::Connected{});
    });
  });
}

// What is said to a merger of a part, and by it, is no session's, which stand what others cannot.
void World::carry(const LinkPtr& link, bool to_master, std::function<void()> arrive) {
  const NodeId worker = link->worker->id(), master = link->master->id();
  const NodeId from = to_master ? worker : master, to = to_master ? master : worker;
  if (link->worker->merges_part()) {
    return network_.carry_in_order(from, to, kMessageBytes, std::move(arrive));
  }
  network_.carry(from, to, kMessageBytes, std::move(arrive));
}

void World::to_master(const LinkPtr& link, MasterEvent event) {
  if (!link || !link->open_at_worker) return;
  carry(link, true, [link, event = std::move(event)] {
    link->master->process().here([link, event] {
      if (link->open_at_master) link->master->hear(link->id, event);
    });
  });
}

void World::to_master(const LinkPtr& link, PartAnswerMessage message) {
  if (!link || !link->open_at_worker) return;
  carry(link, true, [link, message = std::move(message)] {
    link->master->process().here([link, message] {
      if (link->open_at_master) link->master->hear(link->id, message);
    });
  });
}

void World::to_worker(PeerId peer, WorkerEvent event) {
  const auto found = links_.find(peer.value);
  if (found == links_.end() || !found->second->open_at_master) return;
  carry(found->second, false, [link = found->second, event = std::move(event)] {
    link->worker->process().here([link, event] {
      const bool current = link->worker->link_ == link && link->open_at_worker;
      if (current) link->worker->take(event);
    });
  });
}

void World::to_worker(PeerId peer, PartOrderMessage message) {
  const auto found = links_.find(peer.value);
  if (found == links_.end() || !found->second->open_at_master) return;
  carry(found->second, false, [link = found->second, message = std::move(message)] {
    link->worker->process().here([link, message] {
      const bool current = link->worker->link_ == link && link->open_at_worker;
      if (current) link->worker->hear(message);
    });
  });
}

void World::close_at_master(const LinkPtr& link, const std::string& reason, bool tell_peer) {
  if (!link->open_at_master) return;
  link->open_at_master = false;
  if (!link->open_at_worker) links_.erase(link->id.value);
  if (tell_peer) {
    network_.carry(link->master->id(), link->worker->id(), kMessageBytes, [this, link, reason] {
      link->worker->process().here([=, this] { close_at_worker(link, reason, false); });
    });
  }
  link->master->hear(link->id, master_event::PeerLost{link->id, reason});
}

void World::close_at_worker(const LinkPtr& link, const std::string& reason, bool tell_peer) {
  if (!link->open_at_worker) return;
  link->open_at_worker = false;
  if (!link->open_at_master) links_.erase(link->id.value);
  if (tell_peer) {
    network_.carry(link->worker->id(), link->master->id(), kMessageBytes, [this, link, reason] {
      link->master->process().here([=, this] { close_at_master(link, reason, false); });
    });
  }
  WorkerNode& worker = *link->worker;
  if (worker.link_ != link) return;
  worker.link_ = nullptr;
  worker.take(worker_event::MasterLost{reason});
}

// After SendRefused: what the peer still sends is not heard, and its going is no news.
void World::forget_at_master(PeerId peer) {
  const auto found = links_.find(peer.value);
  if (found == links_.end()) return;
  found->second->open_at_master = false;
  if (!found->second->open_at_worker) links_.erase(found);
}

// A killed process' kernel resets its connections; without that, the other sides notice nothing
// but silence.
template <class Node>
void World::drop_links_of(const Node& node, bool tell_peer) {
  const std::map<std::uint64_t, LinkPtr> links = links_;
  for (const auto& [id, link] : links) {
    if (link->master->id() == node.id()) {
      const auto lose = [this, link = link] {
        link->worker->process().here([=, this] { close_at_worker(link, "gone", true); });
      };
      if (tell_peer) network_.carry(node.id(), link->worker->id(), kMessageBytes, lose);
      if (!tell_peer) queue_.after(timing_.silence, lose);
      if (!node.process().alive()) link->open_at_master = false;
    } else if (link->worker->id() == node.id()) {
      const auto lose = [this, link = link] {
        link->master->process().here([=, this] { close_at_master(link, "gone", true); });
      };
      if (tell_peer) network_.carry(node.id(), link->master->id(), kMessageBytes, lose);
      if (!tell_peer) queue_.after(timing_.silence, lose);
      if (!node.process().alive()) link->open_at_worker = false;
    }
  }
}

void World::kill(MasterNode& node, bool silent) {
  if (!node.process().alive()) return;
  node.process().kill();
  drop_links_of(node, !silent);
}

void World::kill(WorkerNode& node, bool silent) {
  if (!node.process().alive()) return;
  node.process().kill();
  drop_links_of(node, !silent);
}

template <class Node>
void World::freeze_node(Node& node) {
  if (!node.process().running()) return;
  node.process().freeze();
  const std::uint64_t freeze = node.process().freezes();
  queue_.after(timing_.silence, [this, &node, freeze] {
    const bool still = node.process().frozen() && node.process().freezes() == freeze;
    if (!still || !node.process().alive()) return;
    const std::map<std::uint64_t, LinkPtr> links = links_;
    for (const auto& [id, link] : links) {
      if (link->master->id() == node.id()) lose_silent(node.id(), link->worker->id());
      if (link->worker->id() == node.id()) lose_silent(node.id(), link->master->id());
    }
  });
}

void World::freeze(MasterNode& node) { freeze_node(node); }
void World::freeze(WorkerNode& node) { freeze_node(node); }

void World::lose_silent(NodeId from, NodeId to) {
  const std::map<std::uint64_t, LinkPtr> links = links_;
  for (const auto& [id, link] : links) {
    const bool at_master = link->worker->id() == from && link->master->id() == to;
    const bool at_worker = link->master->id() == from && link->worker->id() == to;
    if (at_master) {
      link->master->process().here([=, this] { close_at_master(link, "silent", true); });
    } else if (at_worker) {
      link->worker->process().here([=, this] { close_at_worker(link, "silent", true); });
    }
  }
}

bool World::break_connections(WorkerNode& node) {
  const LinkPtr link = node.link_;
  if (!link) return false;
  link->worker->process().here([=, this] { close_at_worker(link, "reset", false); });
  link->master->process().here([=, this] { close_at_master(link, "reset", false); });
  return true;
}

}  // namespace speedo::sim
