#include "main/examine.hpp"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <speedo/gpu/gpu_devices.hpp>

#include "actors/node.hpp"
#include "actors/reachable_address.hpp"
#include "base/log.hpp"
#include "cli/flags/cluster_flags.hpp"
#include "doctor/doctor_report.hpp"
#include "doctor/job_check.hpp"
#include "doctor/machine_check.hpp"
#include "doctor/network_check.hpp"
#include "doctor/store_check.hpp"
#include "main/parts.hpp"

namespace speedo {

namespace {

// Of the weights: the version that is read, the one that replaces it, and the solver's histories;
// and a contribution of each worker.
constexpr std::int64_t kStoredRecords = 3;

void append(Findings more, Findings& findings) {
  for (Finding& each : more) {
    // A later finding of the same name knows more.
    std::erase_if(findings, [&](const Finding& old) { return old.check == each.check; });
    findings.push_back(std::move(each));
  }
}

Finding memory_found(const MemoryDemand& demand, bool force) {
  Finding found = check_memory(demand.bytes, demand.limit, demand.parts);
  if (force && found.health == Health::kProblem) found.health = Health::kWarning;
  return found;
}

// "gpu memory" of the first one that has too little, or of the last.
Findings devices_found(const std::vector<MemoryDemand>& devices, bool force) {
  Findings found;
  for (const MemoryDemand& device : devices) {
    found = {memory_found(device, force)};
    found.front().check = "gpu memory";
    if (found.front().health != Health::kOk) break;
  }
  return found;
}

Result<JobNeed> examine_job(const Examination& examination, Findings& findings) {
  JobNeed need;
  if (examination.solver.empty()) return need;
  SPEEDO_ASSIGN(const ComputeOptions compute, settle(examination.compute));
  const TrainerParts parts = trainer_parts(for_plans(compute));
  SPEEDO_ASSIGN(const std::unique_ptr<Backend> backend, parts.make_backend());
  const std::unique_ptr<FeedFactory> feeds = parts.make_feeds();
  append(check_job(examination.solver, examination.state, *backend, *feeds, need), findings);
  const auto workers = static_cast<std::int64_t>(examination.trains_here ? examination.workers : 1);
  const MemoryDemand trainers{need.process_bytes * workers, {}, memory_limit()};
  const bool is_cluster = examination.cluster.has_value();
  const MemoryDemand& host = is_cluster ? examination.cluster->host : trainers;
  if (host.bytes > 0) append({memory_found(host, examination.force)}, findings);
  std::vector<MemoryDemand> devices;
  if (is_cluster) devices = examination.cluster->devices;
  if (!is_cluster && need.device_bytes > 0 && compute.gpu) {
    // How many processes share it is not known here.
    devices = {{need.device_bytes, {}, gpu_memory(compute.gpu->index)}};
  }
  append(devices_found(devices, examination.force), findings);
  return need;
}

// The GPUs that nets can be computed on; a number that is asked for is looked for with the net.
Finding examine_gpus(const ComputeFlags& flags) {
  const auto wanted = gpu_of(flags);
  if (!wanted) {
    return {"cuda", Health::kProblem, wanted.error().message,
            "leave out --gpu to compute on the CPU"};
  }
  const auto devices = gpu_devices();
  if (!devices) return {"cuda", Health::kOk, "computing on the CPU: " + devices.error().message};
  std::string names;
  for (const GpuDescription& each : *devices) {
    names += fmt::format("{}{}: {}", names.empty() ? "" : ", ", each.index, each.name);
  }
  return {"cuda", Health::kOk, "GPUs " + names};
}

Finding examine_master(const Examination& examination) {
  const char* remedy = "start it first, or give the address that it prints (speedo://HOST:PORT)";
  const auto address = parse_address(examination.master);
  if (!address) return {"master", Health::kProblem, address.error().message, remedy};
  if (const auto probed = probe_master(*address, examination.gate, examination.source); !probed) {
    const bool refused = probed.error().code == ErrorCode::kRefused;
    return {"master", Health::kProblem, probed.error().message,
            refused ? "give it what the master was started with" : remedy};
  }
  return {"master", Health::kOk, "one answers at " + examination.master};
}

Findings examine_listening(const Examination::Listening& listening) {
  Findings findings = {check_port(listening.bind, listening.port)};
  const bool is_local = is_loopback(listening.bind);
  if (is_local && listening.host.empty()) {
    findings.push_back({"host", Health::kOk,
                        "workers of this machine alone reach " + listening.bind +
                            "; for others give --bind"});
  } else if (is_wildcard(listening.bind) && listening.host.empty()) {
    const std::string reachable = reachable_address(listening.bind);
    findings.push_back(reachable.empty()
                           ? Finding{"host", Health::kProblem, "no interface that others reach",
                                     "give --host the address that workers are to call"}
                           : check_host(reachable));
  } else {
    findings.push_back(check_host(listening.host.empty() ? listening.bind : listening.host));
  }
  return findings;
}

}  // namespace

Result<Findings> findings_of(const Examination& examination) {
  Findings findings = check_machine();
  findings.push_back(examine_gpus(examination.compute));
  Findings of_job;
  SPEEDO_ASSIGN(const JobNeed need, examine_job(examination, of_job));
  // What is wrong with its files would be said twice.
  if (!examination.refusal.empty() && !has_problem(of_job)) {
    findings.push_back({"flags", Health::kProblem, examination.refusal, "see --help"});
  }
  append(std::move(of_job), findings);
  append(examination.listening ? examine_listening(*examination.listening)
                               : Findings{check_host("")},
         findings);
  if (!examination.redis.empty()) {
    SPEEDO_ASSIGN(const std::vector<RedisOptions> servers,
                  redis_servers(StoreAddress(examination.redis),
                                {.credentials = examination.credentials,
                                 .source = examination.source,
                                 .tls = examination.redis_tls}));
    const auto records = kStoredRecords + static_cast<std::int64_t>(examination.workers);
    append(check_store(servers, need.weight_bytes * records), findings);
  }
  if (!examination.master.empty()) {
    append({examine_master(examination)}, findings);
  }
  return findings;
}

int print_findings(const Findings& findings, bool json) {
  std::fputs((json ? to_json(findings) : to_text(findings)).c_str(), stdout);
  return has_problem(findings) ? 1 : 0;
}

Result<int> examine(const Examination& examination) {
  SPEEDO_ASSIGN(const Findings findings, findings_of(examination));
  return print_findings(findings, examination.json);
}

}  // namespace speedo
