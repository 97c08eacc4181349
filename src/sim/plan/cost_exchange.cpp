#include "sim/plan/cost_exchange.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/random.hpp>
#include <speedo/codec/codec.hpp>
#include <speedo/store/layout.hpp>

#include "train/parts/part_clip.hpp"

namespace speedo::sim {
namespace {

Error no_way(std::string message) { return {ErrorCode::kConfig, std::move(message)}; }

std::uint64_t server_count(const StoreCosts& store) {
  return store.shards > 0 ? store.shards : store.servers;
}

Result<void> check_codec(const CodecCosts& codec) {
  if (auto spec = parse_codec(codec.name); !spec) return no_way(spec.error().message);
  if (!std::isfinite(codec.ratio) || codec.ratio <= 0.0) {
    return no_way(fmt::format("codec '{}': ratio is {}: it must be a finite number greater than 0",
                              codec.name, codec.ratio));
  }
  for (const double rate : {codec.encode_bytes_per_second, codec.decode_bytes_per_second}) {
    if (std::isfinite(rate) && rate >= 0.0) continue;
    return no_way(fmt::format("codec '{}': a rate is {}: it must be a finite number, 0 or greater",
                              codec.name, rate));
  }
  return {};
}

Result<void> check_servers(const ClusterCosts& cluster) {
  const StoreCosts& store = cluster.store;
  for (const auto& [name, count, min] :
       {std::tuple{"servers", store.servers, 1}, std::tuple{"shards", store.shards, 0}}) {
    if (count >= static_cast<std::uint64_t>(min) && count <= kRecordServersMax) continue;
    return no_way(fmt::format("store: {} is {}: between {} and {} can be used", name, count, min,
                              kRecordServersMax));
  }
  if (store.shards > 0 && store.servers > 1 && store.servers != store.shards) {
    return no_way(fmt::format("store: servers is {} and shards is {}: each shard has a server of "
                              "its own, so leave servers out", store.servers, store.shards));
  }
  for (const std::string& name : store.machines) {
    const bool known = std::ranges::any_of(
        cluster.machines, [&](const MachineCosts& each) {
          return each.name == name && each.count > 0;
        });
    if (!known) return no_way("store: no machine is named '" + name + "'");
  }
  return {};
}

double usual_ratio(const CodecSpec& spec) {
  const std::vector<float> values = usual_values();
  std::vector<std::byte> bytes(encoded_bytes_max(spec, values.size()));
  const auto size = encode(spec, values, {}, bytes);
  SPEEDO_ASSERT(size.has_value());
  return static_cast<double>(values.size() * sizeof(float)) / static_cast<double>(*size);
}

std::string list_of(const std::vector<ClusterHost>& hosts,
                    const std::vector<std::size_t>& servers) {
  constexpr std::size_t kNamedMax = 4;
  std::string text;
  for (std::size_t i = 0; i < servers.size() && i < kNamedMax; ++i) {
    text += (i == 0 ? "" : ", ") + hosts[servers[i]].name;
  }
  return servers.size() > kNamedMax ? text + ", ..." : text;
}

Result<void> check_batches(const NetCosts& net) {
  double products = 0.0;
  for (const BucketCosts& bucket : net.buckets) products += bucket.product;
  std::set<std::uint64_t> known;
  for (const auto& [batch, times] : net.batches) {
    if (batch < 1 || !std::isfinite(times) || times <= 0.0) {
      return no_way(
          fmt::format("net: batches: {} images that take {} times as long cannot be "
                      "simulated",
                      batch, times));
    }
    // The rule takes as long for any batch.
    if (net.update > 0.0 && net.update / times + products >= 1.0) {
      return no_way(
          fmt::format("net: batches: {} images that take {} times as long leave no time "
                      "beside update, which is {} of a mini-batch",
                      batch, times, net.update));
    }
    if (batch == net.batch && times != 1.0) {
      return no_way(
          fmt::format("net: batches: {} images are the batch itself, and take 1 times as "
                      "long, not {}",
                      batch, times));
    }
    if (!known.insert(batch).second) {
      return no_way(fmt::format("net: batches: {} images are named twice", batch));
    }
  }
  return {};
}

}  // namespace

Result<void> check_exchange(const ClusterCosts& cluster) {
  SPEEDO_TRY(check_servers(cluster));
  std::set<std::string> names;
  for (const CodecCosts& codec : cluster.codecs) {
    SPEEDO_TRY(check_codec(codec));
    const bool is_new = names.insert(codec.name).second;
    if (!is_new) return no_way("two codecs are named '" + codec.name + "'");
  }
  if (auto codec = codec_of(cluster, cluster.worker.codec); !codec) {
    return no_way("worker: " + codec.error().message);
  }
  return check_batches(cluster.net);
}

Result<void> check_exchange(const ClusterCosts& cluster, const UpdateSpec& update) {
  if (cluster.store.shards == 0) return {};
  if (update.replicated) return {};
  if (averages_histories(update) || update.kind == UpdateKind::kElasticMaster) {
    return usage_error("mergers beside the shards have only a part of the weights, and neither "
                       "average updaters nor form SpeeDO's elastic steps: leave such schedules or "
                       "the shards out");
  }
  if (update.kind == UpdateKind::kGradientOnly && cluster.net.clips) {
    return usage_error("a net that clips takes the norm of the whole gradient, which no shard has: "
                       "leave gradient-only or the shards out");
  }
  return {};
}

std::vector<std::size_t> server_hosts(const ClusterCosts& cluster) {
  const std::uint64_t count = server_count(cluster.store);
  if (count == 1 && cluster.store.shards == 0) {
    return {host_of(cluster, cluster.store.machine)};
  }
  const std::vector<ClusterHost> hosts = hosts_of(cluster);
  std::vector<std::size_t> places;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const std::vector<std::string>& names = cluster.store.machines;
    const std::string& name = cluster.machines[hosts[host].kind].name;
    if (names.empty() || std::ranges::find(names, name) != names.end()) places.push_back(host);
  }
  SPEEDO_ASSERT(!places.empty());
  std::vector<std::size_t> servers;
  for (std::uint64_t i = 0; i < count; ++i) servers.push_back(places[i % places.size()]);
  return servers;
}

std::vector<double> server_shares(const ClusterCosts& cluster) {
  const std::uint64_t count = server_count(cluster.store);
  const std::uint64_t floats = cluster.net.parameters;
  std::vector<double> shares;
  for (std::size_t part = 0; part < count; ++part) {
    shares.push_back(static_cast<double>(clipped_count(floats, {part, count})) /
                     static_cast<double>(floats));
  }
  return shares;
}

Result<CodecCosts> codec_of(const ClusterCosts& cluster, const std::string& name) {
  SPEEDO_ASSIGN(const CodecSpec spec, parse_codec(name));
  for (const CodecCosts& codec : cluster.codecs) {
    if (const auto known = parse_codec(codec.name); known && *known == spec) return codec;
  }
  if (spec.kind == CodecKind::kNone) return CodecCosts{.name = name};
  if (spec.kind == CodecKind::kThreshold && spec.threshold > 0.0F) {
    return usage_error("codec '" + name + "' sends what reaches T, and how much that is, only the "
                       "net knows: describe it with [[codec]] name, ratio");
  }
  return CodecCosts{.name = name, .ratio = usual_ratio(spec)};
}

std::vector<float> usual_values() {
  Random random(1);
  std::vector<float> values(kCodecElementsMax);
  for (float& value : values) {
    const float wide = random.uniform();
    value = 0.01F * wide * wide * wide * random.uniform(-1.0F, 1.0F);
  }
  return values;
}

// A shard's merger is a process of its own, and shares none.
bool shares_memory(const ClusterCosts& cluster) {
  return cluster.worker.shares_memory.value_or(false) && cluster.store.shards == 0;
}

std::string describe_exchange(const ClusterCosts& cluster) {
  const std::vector<ClusterHost> hosts = hosts_of(cluster);
  const std::vector<std::size_t> servers = server_hosts(cluster);
  const std::string where = list_of(hosts, servers);
  std::string text;
  if (cluster.store.shards > 0) {
    text = fmt::format("{} shard{} on {}, {}", servers.size(), servers.size() == 1 ? "" : "s",
                       where, cluster.store.copies && servers.size() > 1
                                  ? "each with a copy on the next"
                                  : "without copies");
  } else {
    text = fmt::format("{} on {}, the master merges",
                       servers.size() == 1 ? std::string("one store")
                                           : fmt::format("{} servers", servers.size()), where);
  }
  if (shares_memory(cluster)) {
    text += fmt::format("; workers on {} exchange in memory",
                        hosts[host_of(cluster, cluster.master.machine)].name);
  }
  const auto codec = codec_of(cluster, cluster.worker.codec);
  if (!codec || codec->name == "none") return text + "; codec none";
  return text + fmt::format("; codec {}, {:.3g} times fewer bytes to the store", codec->name,
                            codec->ratio);
}

}  // namespace speedo::sim
