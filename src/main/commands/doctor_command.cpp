#include "base/bare_host.hpp"
#include "cli/flags/cluster_flags.hpp"
#include "cli/flags/gpu_choice.hpp"
#include "cli/flags/redis_tls_flags.hpp"
#include "cli/password_source.hpp"
#include "cli/report/console.hpp"
#include "cli/worker_range.hpp"
#include "main/cluster_job.hpp"
#include "main/commands.hpp"
#include "main/examine.hpp"
#include "main/local_plan.hpp"
#include "main/parts.hpp"
#include "main/program_options.hpp"

namespace speedo {

namespace {

// Of all of the job's processes, as `speedo run` judges it, where no flag says that master or store
// are elsewhere. None: what is wrong with the job's files is found otherwise.
std::optional<ClusterDemand> demand_of(const Examination& examination) {
  if (examination.solver.empty() || examination.listening) return std::nullopt;
  if (!examination.redis.empty() || !examination.master.empty()) return std::nullopt;
  ClusterFlags flags;
  flags.solver = examination.solver;
  flags.state = examination.state;
  flags.compute = examination.compute;
  const auto file = read_job_files(flags);
  const auto compute = settle(examination.compute);
  ComputeFlags of_master = examination.compute;
  of_master.gpu.reset();  // --gpu is for workers
  const auto master_gpu = gpu_of(of_master);
  if (!file || !compute || !master_gpu) return std::nullopt;
  LocalPlan plan{.file = *file,
                 .stages = {Schedule{}},
                 .compute = *compute,
                 .master_gpu = *master_gpu,
                 .workers = examination.workers};
  if (*master_gpu && !examination.compute.gpu && examination.compute.device == "gpu") {
    plan.gpus = usable_gpus(gpu_devices());
  }
  auto demand = predict_cluster(cluster_plan(plan));
  if (!demand) return std::nullopt;
  return *std::move(demand);
}

}  // namespace

Result<int> doctor_command(const CommandLine& line) {
  OptionValues values(Program::kDoctor);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  Examination examination;
  std::string workers, password_file;
  Examination::Listening listening;
  values.get("solver", examination.solver);
  values.get("workers", workers);
  values.get("redis", examination.redis);
  values.get("redis-password-file", password_file);
  values.get("master", examination.master);
  const GateFlags gate = gate_flags(values);
  SPEEDO_TRY(check(gate));
  examination.gate = gate_files(gate);
  SPEEDO_ASSIGN(examination.redis_tls, redis_tls_files(values));
  values.get("bind", listening.bind);
  values.get("host", listening.host);
  listening.bind = bare_host(listening.bind);
  listening.host = bare_host(listening.host);
  values.get("port", listening.port);
  values.get("json", examination.json);
  examination.state = state_flags(values);
  examination.compute = compute_flags(values);
  SPEEDO_ASSIGN(const WorkerRange range, parse_workers(workers));
  examination.workers = range.expected();
  set_up_console(false);
  set_log_level(LogLevel::kNothing);
  SPEEDO_ASSIGN(examination.credentials, redis_credentials(password_file, line.secrets));
  ClusterFlags flags;
  values.get("iface", flags.iface);
  if (!flags.iface.empty()) {
    flags.bind = listening.bind;
    flags.host = listening.host;
    SPEEDO_ASSIGN(examination.source, settle_interface(flags));
    listening.bind = flags.bind;
  }
  const bool listens = values.given("bind") || values.given("host") || values.given("port");
  if (listens || !flags.iface.empty()) {
    if (listening.bind.empty()) {
      listening.bind = listening.host.empty() ? "127.0.0.1" : listening.host;
    }
    examination.listening = listening;
  }
  examination.cluster = demand_of(examination);
  return examine(examination);
}

}  // namespace speedo
