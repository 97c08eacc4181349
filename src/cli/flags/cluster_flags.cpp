#include "cli/flags/cluster_flags.hpp"

#include <cstdint>
#include <memory>

#include <netdb.h>
#include <netinet/in.h>

#include <speedo/base/remote_files.hpp>
#include <speedo/store/redis_store.hpp>

#include "base/bare_host.hpp"
#include "base/network_interfaces.hpp"
#include "cli/emulated_compute.hpp"
#include "cli/flags/shard_by.hpp"
#include "cli/flags/speedo_flags.hpp"
#include "cli/http_address.hpp"
#include "cli/solver_file.hpp"
#include "cli/stages.hpp"

namespace speedo {

namespace {

bool is_start_given(const ClusterFlags& flags) {
  return !flags.snapshot.empty() || !flags.weights.empty();
}

void read_job(const OptionValues& values, ClusterFlags& flags) {
  values.get("solver", flags.solver);
  values.get("workers", flags.workers);
  values.get("hybrid", flags.hybrid);
  values.get("hybrid-file", flags.hybrid_file);
  values.get("deterministic", flags.deterministic);
  values.get("shard", flags.shard);
  values.get("shard-by", flags.shard_by);
  values.get("data-map", flags.data_map);
  values.get("data-root", flags.data_root);
  values.get("start-iter", flags.start_iter);
  values.get("batch", flags.batch);
  values.get("seed", flags.seed);
  values.get("resume", flags.resume);
  values.get("take-over", flags.take_over);
  values.get("snapshot", flags.snapshot);
  values.get("weights", flags.weights);
  values.get("publish-interval", flags.publish_interval);
  values.get("snapshot-interval", flags.snapshot_interval);
  values.get("output-root", flags.output_root);
  values.get("clip-contributions", flags.clip_contributions);
  values.get("robust", flags.robust);
  flags.non_finite = non_finite_flags(values);
  values.get("snapshot-workers", flags.snapshot_workers);
  values.get("job", flags.key_name);
}

void read_network(const OptionValues& values, ClusterFlags& flags) {
  values.get("redis", flags.redis);
  values.get("redis-password-file", flags.redis_password_file);
  values.get("max-rate", flags.max_rate);
  values.get("iface", flags.iface);
  values.get("no-shared-memory", flags.no_shared_memory);
  values.get("emulate-compute", flags.emulate_compute);
  values.get("shards", flags.shards);
  values.get("no-shard-copies", flags.no_shard_copies);
  values.get("bind", flags.bind);
  values.get("port", flags.port);
  values.get("host", flags.host);
  flags.bind = bare_host(flags.bind);
  flags.host = bare_host(flags.host);
  values.get("insecure", flags.insecure);
  values.get("insecure-redis", flags.insecure_redis);
  flags.insecure_redis = flags.insecure_redis || flags.insecure;
  flags.gate = gate_flags(values);
  values.get("address-file", flags.address_file);
  values.get("join-timeout", flags.join_timeout_s);
  values.get("below-min-timeout", flags.below_min_timeout_s);
  values.get("worker-timeout", flags.worker_timeout_s);
  values.get("stall-timeout", flags.stall_timeout_s);
  values.get("store-timeout", flags.store_timeout_s);
  values.get("grace-period", flags.grace_period_s);
}

// What tells where a training stands has other files beside it.
Result<void> check_local(const std::string& flag, const std::string& name) {
  if (!is_uri(name)) return {};
  return Error{ErrorCode::kUnsupported,
               flag + " " + shown_name(name) +
                   ": reads files of this machine alone, with those beside them: fetch them; the "
                   "weights of a .caffemodel come from a URI, too, with --weights"};
}

// The store's weights may be given another number, as SpeeDO's users do; a checkpoint file, or the
// newest of both, is what it is. Beside --resume=auto the number is that of the weights given
// there.
Result<void> check_start_iteration(const ClusterFlags& flags) {
  if (!flags.start_iter || flags.resume == kResumeFromStore) return {};
  const bool numbers_given = flags.resume == kResumeNewest && is_start_given(flags);
  if (!flags.resume.empty() && !numbers_given) {
    return usage_error("--start-iter contradicts --resume=" + flags.resume +
                       ", which knows its iteration: give one of them; to count weights anew, "
                       "--weights M.caffemodel --start-iter " +
                       std::to_string(*flags.start_iter));
  }
  if (flags.snapshot.find(".solverstate") != std::string::npos) {
    return usage_error("--start-iter contradicts --snapshot " + flags.snapshot +
                       ", which knows its iteration: give one of them");
  }
  return {};
}

Result<void> check_start(const ClusterFlags& flags, ClusterRole role) {
  SPEEDO_TRY(check_start_sources(flags.resume, flags.snapshot, flags.weights));
  SPEEDO_TRY(check_start_iteration(flags));
  if (flags.snapshot.ends_with(".speedo")) {
    return usage_error("--snapshot " + flags.snapshot +
                       ": a checkpoint of a cluster is given with --resume=" + flags.snapshot);
  }
  if (role == ClusterRole::kRun && flags.resume == kResumeFromStore) {
    return usage_error(
        "--resume: the Redis of `speedo run` ends with it, so there is no store to resume "
        "from: give --resume=auto or --resume=FILE.speedo");
  }
  const std::string& from = flags.resume;
  if (!from.empty() && from != kResumeFromStore && from != kResumeNewest &&
      !from.ends_with(".speedo")) {
    return usage_error("--resume=" + from +
                       ": takes auto or a .speedo file (a .solverstate or a "
                       ".caffemodel is given with --snapshot)");
  }
  return {};
}

Result<void> check_deterministic(const ClusterFlags& flags) {
  if (!flags.deterministic) return {};
  SPEEDO_ASSIGN(const WorkerRange range, parse_workers(flags.workers));
  if (range.max != 0 && range.min != range.max) {
    return usage_error("--deterministic needs a fixed number of workers: --workers " +
                       std::to_string(range.max) + " instead of " + flags.workers);
  }
  if (flags.shard == "offset") {
    return usage_error(
        "--shard offset depends on the order in which workers join, so --deterministic "
        "contradicts it");
  }
  if (flags.shard_by != "equal") {
    return usage_error("--shard-by " + flags.shard_by +
                       " depends on measured times or on names, so --deterministic contradicts it");
  }
  return {};
}

Result<void> check_shards(const ClusterFlags& flags) {
  SPEEDO_ASSIGN(const ShardBy by, parse_shard_by(flags.shard_by));
  if (flags.shard == "offset" && !by.is_equal()) {
    return usage_error("--shard-by " + flags.shard_by +
                       " gives out shares of the data, but with --shard offset each worker reads "
                       "on alone: leave one out");
  }
  if (!flags.data_map.empty() && flags.shard != "offset") {
    return usage_error(
        "--data-map gives each worker data of its own, which it reads alone: add --shard offset");
  }
  return {};
}

Result<void> check_network(const ClusterFlags& flags) {
  SPEEDO_TRY(check(flags.gate));
  if (flags.insecure && flags.gate.any()) {
    return usage_error("--insecure lets everybody in, and " +
                       std::string(flags.gate.token_file.empty() ? "--tls-cert" : "--token-file") +
                       " does not: give one of them. For a Redis that asks for no password give "
                       "--insecure-redis");
  }
  const std::string bind = bind_address(flags);
  if (is_loopback(bind) || flags.insecure || flags.gate.any()) return {};
  return usage_error(
      (flags.bind.empty() ? "--host " : "--bind ") + bind +
      ": others reach this address, and nothing says who of them may join: add --token-file FILE "
      "(speedo token create FILE makes one, which workers are given, too), or --insecure if all "
      "of them are trusted" +
      (flags.bind.empty() ? ", or --bind with the address to listen on" : ""));
}

}  // namespace

Result<void> check_start_sources(const std::string& resume, const std::string& snapshot,
                                 const std::string& weights) {
  if (!is_model_file(snapshot)) SPEEDO_TRY(check_local("--snapshot", snapshot));
  SPEEDO_TRY(check_local("--resume", resume));
  if (!snapshot.empty() && !weights.empty()) {
    return usage_error(
        "--snapshot and --weights each give the weights to start from: give one of them");
  }
  const bool is_given = !snapshot.empty() || !weights.empty();
  if (!is_given || resume.empty() || resume == kResumeNewest) return {};
  return usage_error(std::string(snapshot.empty() ? "--weights" : "--snapshot") +
                     " and --resume each give the weights to start from: give one of them, or "
                     "--resume=auto, beside which they are for a start without a checkpoint");
}

RotationRules rotation_flags(const OptionValues& values) {
  RotationRules rules;
  values.get("keep-snapshots", rules.keep);
  values.get("keep-best", rules.keep_best);
  return rules;
}

Result<void> check(const RotationRules& rules) {
  if (rules.keep_best && !rules.keep) {
    return usage_error(
        "--keep-best keeps one checkpoint besides the last N, but without "
        "--keep-snapshots N all are kept: add it, or leave --keep-best out");
  }
  return {};
}

std::string bind_address(const ClusterFlags& flags) {
  if (!flags.bind.empty()) return flags.bind;
  return flags.host.empty() ? "127.0.0.1" : flags.host;
}

Result<std::string> settle_interface(ClusterFlags& flags) {
  if (flags.iface.empty()) return std::string();
  if (!flags.bind.empty() || !flags.host.empty()) {
    return usage_error("--iface " + flags.iface + " says where to listen, and so does " +
                       (flags.bind.empty() ? "--host" : "--bind") + ": give one of them");
  }
  SPEEDO_ASSIGN(const auto all, interface_addresses());
  SPEEDO_ASSIGN(flags.host, choose_address(flags.iface, all));
  flags.bind = flags.host;
  return flags.host;
}

bool is_open_to_others(const ClusterFlags& flags) {
  return !flags.gate.any() && !is_loopback(bind_address(flags));
}

// A name may begin like an address: 127.example.org.
bool is_loopback(const std::string& address) {
  if (address == "localhost") return true;
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  if (found->ai_family == AF_INET) {
    constexpr std::uint32_t kLoopbackNetwork = 127;
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(*found->ai_addr);
    return ntohl(v4.sin_addr.s_addr) >> 24U == kLoopbackNetwork;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(*found->ai_addr);
  return found->ai_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

Result<ComputeOptions> settle(const ClusterFlags& flags) {
  ComputeFlags compute = flags.compute;
  SPEEDO_TRY(check_worker_precision(compute));
  compute.pinned = flags.deterministic;
  return settle(compute);
}

ClusterFlags cluster_flags(const OptionValues& values) {
  ClusterFlags flags;
  read_job(values, flags);
  read_network(values, flags);
  flags.schedule = schedule_flags(values);
  flags.rotation = rotation_flags(values);
  flags.compute = compute_flags(values);
  flags.state = state_flags(values);
  flags.log = log_flags(values);
  flags.remote = remote_flags(values);
  flags.parser = parser_flags(values);
  flags.signals = signal_flags(values);
  values.get("cpu-db-actor", flags.cpu_db_actor);
  values.get("force", flags.force);
  values.get("json", flags.json);
  values.get("dry-run", flags.dry_run);
  values.get("tensorboard", flags.tensorboard);
  values.get("curve", flags.curve);
  values.get("trace-file", flags.trace);
  values.get("metrics-addr", flags.metrics_addr);
  values.get("sleep-after-finish", flags.sleep_after_finish);
  return flags;
}

Result<void> check(const ClusterFlags& flags, ClusterRole role) {
  SPEEDO_TRY(worker_range(flags));
  SPEEDO_TRY(check_start(flags, role));
  SPEEDO_TRY(check(flags.rotation));
  SPEEDO_TRY(check_shards(flags));
  if (!flags.emulate_compute.empty()) SPEEDO_TRY(parse_emulated_compute(flags.emulate_compute));
  SPEEDO_TRY(check_deterministic(flags));
  SPEEDO_TRY(make_stages(flags));
  if (role == ClusterRole::kMaster) SPEEDO_TRY(parse_redis_addresses(flags.redis));
  SPEEDO_TRY(check_device(flags.compute));
  if (!flags.metrics_addr.empty()) SPEEDO_TRY(parse_http_address(flags.metrics_addr));
  if (!flags.sleep_after_finish.empty()) SPEEDO_TRY(sleep_time(flags.sleep_after_finish));
  return check_network(flags);
}

Result<WorkerRange> worker_range(const ClusterFlags& flags) {
  SPEEDO_ASSIGN(WorkerRange range, parse_workers(flags.workers));
  if (flags.deterministic) range = {range.start, range.start, range.start};
  return range;
}

}  // namespace speedo
