#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/ranges.h>

#include "actors/reachable_address.hpp"
#include "base/log.hpp"
#include "base/trace.hpp"
#include "cli/flags/cluster_flags.hpp"
#include "cli/flags/redis_tls_flags.hpp"
#include "cli/flags/speedo_flags.hpp"
#include "cli/flags/worker_names.hpp"
#include "cli/hosts_file.hpp"
#include "cli/net_inputs.hpp"
#include "cli/options/option_parser.hpp"
#include "cli/options/read_options.hpp"
#include "cli/password_source.hpp"
#include "cli/report/console.hpp"
#include "cli/signals.hpp"
#include "cli/solver_file.hpp"
#include "gate/token_file.hpp"
#include "local/host_check.hpp"
#include "local/local_cluster.hpp"
#include "local/remote_host.hpp"
#include "local/shared_redis.hpp"
#include "main/cluster_job.hpp"
#include "main/commands.hpp"
#include "main/examine.hpp"
#include "main/parts.hpp"
#include "main/program_options.hpp"
#include "main/training_state.hpp"

namespace speedo {
namespace {

struct LaunchFlags {
  ClusterFlags cluster;
  std::string hosts, require, log_dir;
  RemoteShell shell;
  std::uint64_t max_restarts = 0;
  int compute_nice = 0;
};

LaunchFlags launch_flags(const OptionValues& values) {
  LaunchFlags flags;
  flags.cluster = cluster_flags(values);
  values.get("hosts", flags.hosts);
  values.get("require", flags.require);
  values.get("log-dir", flags.log_dir);
  values.get("ssh", flags.shell.program);
  std::string options;
  values.get("ssh-options", options);
  flags.shell.options = split_at_blanks(options);
  values.get("max-restarts", flags.max_restarts);
  values.get("compute-nice", flags.compute_nice);
  return flags;
}

std::uint64_t workers_of(const std::vector<Host>& hosts) {
  std::uint64_t workers = 0;
  for (const Host& host : hosts) workers += host.workers;
  return workers;
}

bool are_all_here(const std::vector<Host>& hosts) {
  return std::all_of(hosts.begin(), hosts.end(), [](const Host& host) {
    return is_loopback(host.name.substr(host.name.rfind('@') + 1));
  });
}

// What the hosts reach master and Redis at.
Result<std::string> own_address(const ClusterFlags& flags, const std::vector<Host>& hosts) {
  if (!flags.host.empty()) return flags.host;
  if (!flags.bind.empty() && !is_wildcard(flags.bind)) return flags.bind;
  if (are_all_here(hosts)) return std::string("127.0.0.1");
  const std::string found = reachable_address(flags.bind.empty() ? "0.0.0.0" : flags.bind);
  if (!found.empty()) return found;
  return Error{ErrorCode::kUsage,
               "this machine has no network address but the loopback's, so no host reaches a "
               "master here; give the address that they reach with --host"};
}

// Those that can work. Error: kUnavailable.
Result<std::vector<Host>> hosts_that_answer(const LaunchFlags& flags,
                                            const std::vector<Host>& hosts) {
  SPEEDO_INFO("Asking {} host{} for speedo-worker", hosts.size(), hosts.size() == 1 ? "" : "s");
  SPEEDO_ASSIGN(const std::vector<HostState> states, check_hosts(flags.shell, hosts, version()));
  if (const auto reason = stop_requested()) return Error{ErrorCode::kUnavailable, *reason};
  std::vector<Host> good;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (states[i].problem.empty()) {
      good.push_back(hosts[i]);
    } else {
      SPEEDO_WARN("Host {}: {}", label(hosts[i]), states[i].problem);
    }
  }
  if (good.size() == hosts.size()) return good;
  const std::size_t bad = hosts.size() - good.size();
  if (flags.require == "all" || good.empty()) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{} of {} hosts cannot work, for the reasons above; nothing was "
                             "started{}",
                             bad, hosts.size(),
                             good.empty() ? "" : " (--require any goes on with the others)")};
  }
  SPEEDO_WARN("Going on with {} of {} hosts (--require all would start none)", good.size(),
              hosts.size());
  return good;
}

// What the master would refuse, and names of workers that no host has: unless others may join, with
// a token of the user's.
Result<void> check_flags(ClusterFlags flags, const std::vector<Host>& hosts) {
  const bool draws_token = flags.gate.token_file.empty();
  flags.insecure = draws_token;
  SPEEDO_TRY(check(flags, ClusterRole::kMaster));
  if (!draws_token) return {};
  std::vector<std::string> names;
  for (const Host& host : hosts) names.push_back(label(host));
  return check_worker_names(flags, names, fmt::format("{}", fmt::join(names, ", ")));
}

// The job, and what master and Redis need here.
Result<Findings> examine_here(const LaunchFlags& flags, const std::vector<Host>& hosts,
                              bool has_redis, const RedisCredentials& credentials) {
  const ClusterFlags& cluster = flags.cluster;
  Examination examination;
  examination.solver = cluster.solver;
  examination.state = cluster.state;
  examination.refusal = refusal_of(cluster);
  if (has_redis) {
    examination.redis = cluster.redis;
    examination.credentials = credentials;
    examination.redis_tls = cluster.redis_tls;
  }
  SPEEDO_ASSIGN(const WorkerRange workers, worker_range(cluster));
  examination.workers = workers.expected();
  examination.trains_here = false;
  // Hosts that are this machine reach the loopback.
  examination.listening =
      Examination::Listening{.bind = bind_address(cluster),
                             .host = are_all_here(hosts) ? std::string() : cluster.host,
                             .port = cluster.port};
  examination.compute = cluster.compute;
  return findings_of(examination);
}

// --dry-run: what is here, then a line for each host. 1 if something cannot work.
Result<int> try_launch(const LaunchFlags& flags, const std::vector<Host>& hosts, bool has_redis,
                       const RedisCredentials& credentials) {
  // Hosts are asked first, as threads begin with the job's nets.
  SPEEDO_ASSIGN(const std::vector<HostState> states, check_hosts(flags.shell, hosts, version()));
  SPEEDO_ASSIGN(Findings findings, examine_here(flags, hosts, has_redis, credentials));
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    Finding finding{.check = "host " + label(hosts[i]),
                    .what = fmt::format("{}, {} worker{}", states[i].version, hosts[i].workers,
                                        hosts[i].workers == 1 ? "" : "s")};
    if (!states[i].problem.empty()) {
      finding.health = Health::kProblem;
      finding.what = states[i].problem;
      finding.remedy = states[i].remedy;
    }
    findings.push_back(std::move(finding));
  }
  return print_findings(findings, flags.cluster.json);
}

// Of the Redis that is used; one that is started here has a password that is drawn for it.
Result<RedisCredentials> launch_credentials(const LaunchFlags& flags, bool has_redis,
                                            const ProcessSecrets& secrets) {
  if (has_redis) return redis_credentials(flags.cluster.redis_password_file, secrets);
  if (flags.cluster.redis_tls.any()) {
    return usage_error("--redis-tls-ca, -cert and -key are of a Redis of your own: name it with "
                       "--redis, or leave them out");
  }
  RedisCredentials credentials;
  credentials.password = drawn_password();
  return credentials;
}

std::vector<std::string> master_flags(const OptionValues& values, const std::string& address,
                                      std::uint64_t workers) {
  std::vector<std::string> arguments = values.arguments_for(Program::kMaster);
  std::erase_if(arguments, [](const std::string& flag) {
    return flag.starts_with("--redis=") || flag.starts_with("--redis-password-file=") ||
           flag.starts_with("--host=") || flag.starts_with("--token-file=") ||
           flag == "--insecure";
  });
  arguments.push_back("--host=" + address);
  arguments.push_back("--workers=" + std::to_string(workers));
  arguments.emplace_back(kNoConfig);
  return arguments;
}

// `name`: of its log.
WorkerProcess worker_process(const LaunchFlags& flags, const Host& host, const std::string& name,
                             const RedisCredentials& credentials) {
  return {.name = name,
          .command = [flags, host, credentials](const MasterPlace& master) -> Result<ChildCommand> {
            std::vector<std::string> arguments = worker_flags(flags.cluster, flags.compute_nice);
            for (std::string& flag : to_arguments(flags.cluster.redis_tls)) {
              arguments.push_back(std::move(flag));
            }
            arguments.push_back("--master=" + master.address);
            const auto stopped = [] { return stop_requested().has_value(); };
            SPEEDO_ASSIGN(const std::vector<Secret> tokens,
                          read_token_file(master.token_file, stopped));
            return remote_workers(flags.shell, host, arguments,
                                  {.redis = credentials, .token = tokens.front()});
          },
          .workers = host.workers};
}

}  // namespace

Result<int> launch_command(const CommandLine& line) {
  SPEEDO_TRY(refuse_speedo_flags(line.arguments, SpeedoProgram::kMaster));
  OptionValues values(Program::kLaunch);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(fold_speedo(line.arguments), values));
  if (parsed == Parsed::kDone) return 0;
  LaunchFlags flags = launch_flags(values);
  SPEEDO_ASSIGN(const std::vector<Host> listed, read_hosts_file(flags.hosts));
  set_up_console(flags.cluster.log);

  SPEEDO_ASSIGN(const std::string address, own_address(flags.cluster, listed));
  SPEEDO_ASSIGN(flags.cluster.redis_tls, redis_tls_files(values));
  flags.cluster.host = address;
  flags.cluster.workers = std::to_string(workers_of(listed));
  SPEEDO_TRY(check_flags(flags.cluster, listed));
  const bool has_redis = values.given("redis");
  SPEEDO_ASSIGN(const RedisCredentials credentials,
                launch_credentials(flags, has_redis, line.secrets));
  if (flags.cluster.dry_run) return try_launch(flags, listed, has_redis, credentials);
  install_signal_handlers(flags.cluster.signals);
  SPEEDO_ASSIGN(const std::unique_ptr<OutputRoot> outputs,
                confine_outputs(flags.cluster.output_root));
  SPEEDO_ASSIGN(const SolverFile file, read_job_files(flags.cluster));
  const Result<std::vector<Host>> answered = hosts_that_answer(flags, listed);
  if (const auto reason = stop_requested()) {
    SPEEDO_INFO("{}: nothing was started", *reason);
    return 0;
  }
  SPEEDO_ASSIGN(const std::vector<Host> hosts, answered);

  LocalClusterOptions options;
  options.master_flags = master_flags(values, address, workers_of(hosts));
  const std::vector<std::string> names = log_names(hosts);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    options.workers.push_back(worker_process(flags, hosts[i], names[i], credentials));
  }
  options.redis = [&](const std::filesystem::path& folder) -> Result<std::vector<RedisPlace>> {
    SPEEDO_ASSIGN(RedisPlace place, has_redis
                                        ? other_redis(folder, flags.cluster.redis, credentials)
                                        : shared_redis(folder, address, credentials.password));
    return std::vector<RedisPlace>{std::move(place)};
  };
  options.token_file = flags.cluster.gate.token_file;
  options.needed_workers = workers_of(hosts);
  options.state = ask_training_state();
  options.max_restarts = flags.max_restarts;
  options.json = flags.cluster.json;
  options.log_dir = flags.log_dir;
  options.snapshot_prefix = file.solver.snapshot_prefix();
  options.job = job_of(flags.cluster, file.solver);
  SPEEDO_ASSIGN(const std::unique_ptr<Trace> trace,
                Trace::start(flags.cluster.trace, "speedo launch"));
  return run_local_cluster(options);
}

}  // namespace speedo
