#include "main/parts.hpp"

#include <algorithm>

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <speedo/cpu/cpu_backend.hpp>
#include <speedo/gpu/gpu_backend.hpp>

#include "base/log.hpp"
#include "cli/exit_code.hpp"
#include "cli/signals.hpp"
#include "cpu/isa.hpp"
#include "data/feed_factory.hpp"
#include "data/parser/parser_processes.hpp"
#include "data/sink_factory.hpp"

namespace speedo {

namespace {

// Of this thread and those that it makes, against the process's first thread: a trainer's thread
// makes another backend for another job, and must not sink further each time.
void lower_priority(int nice) {
  if (nice == 0) return;
  const int process = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::getpid()));
  if (::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), process + nice) != 0) {
    SPEEDO_WARN("the compute threads keep their priority: {}", std::strerror(errno));
  }
}

// Whoever watches this process starts another.
void end_with_gpu(const Error& fault) {
  end_at_once(fault.message + "; this process ends\n", kGpuFaultExit);
}

int parts_of_loops(const ComputeOptions& options) {
  if (are_cpu_kernels_pinned()) return kPinnedParts;
  return options.parts > options.threads ? options.parts : 0;
}

Result<std::unique_ptr<Backend>> make_backend(const ComputeOptions& options) {
  if (options.gpu) {
    GpuOptions gpu = *options.gpu;
    gpu.deterministic = gpu.deterministic || are_cpu_kernels_pinned();
    gpu.fuses = fuses_products();
    gpu.on_fault = end_with_gpu;
    return make_gpu_backend(gpu);
  }
  return make_cpu_backend(CpuOptions{.threads = options.threads,
                                     .precision = options.precision,
                                     .parts = parts_of_loops(options)});
}

// The kernels of a deterministic job are the same on all machines, not the best of each.
Result<void> choose_kernels(const JobSpec& job, CpuPrecision precision) {
  if (!job.deterministic) return {};
  if (precision != CpuPrecision::kFloat32) {
    return Error{ErrorCode::kUsage,
                 "the job is --deterministic, but --precision bf16 computes what not every machine "
                 "can: leave --precision out"};
  }
  if (are_cpu_kernels_pinned()) return {};
  SPEEDO_INFO("The job is deterministic: computing with the kernels that every machine has");
  return pin_cpu_kernels();
}

}  // namespace

TrainerParts trainer_parts(const ComputeOptions& options) {
  TrainerParts parts;
  parts.make_backend = [options]() -> Result<std::unique_ptr<Backend>> {
    lower_priority(options.nice);
    return make_backend(options);
  };
  parts.choose_kernels = [precision = options.precision](const JobSpec& job) {
    return choose_kernels(job, precision);
  };
  // What computes waits for what decodes, or the other way round: either may use every core.
  parts.make_feeds = [threads = options.threads > 0 ? options.threads : default_threads(),
                      skip = options.skip_bad_records] {
    return make_feed_factory(threads, bad_record_policy(skip));
  };
  parts.take_parser_deaths = [] { return static_cast<std::uint64_t>(take_parser_deaths()); };
  return parts;
}

ComputeOptions for_plans(ComputeOptions options) {
  if (options.gpu) options.gpu->tries = false;
  return options;
}

ComputeOptions for_plans_of_others(ComputeOptions options) {
  options = for_plans(std::move(options));
  if (options.gpu) options.gpu->lets_go = true;
  return options;
}

MemoryLimit gpu_memory(int index) {
  const auto devices = gpu_devices();
  if (!devices || index < 0 || std::cmp_greater_equal(index, devices->size())) return {};
  const GpuDescription& device = (*devices)[static_cast<std::size_t>(index)];
  return {static_cast<std::int64_t>(device.memory_bytes),
          fmt::format("the memory of GPU {} ({})", index, device.name)};
}

MemoryPolicy memory_policy(const ComputeOptions& options, bool force) {
  MemoryPolicy policy{.force = force};
  if (options.gpu) policy.device_limit = gpu_memory(options.gpu->index);
  return policy;
}

std::unique_ptr<SinkFactory> make_sinks() { return make_sink_factory(); }

Result<std::unique_ptr<OutputRoot>> confine_outputs(const std::string& folder) {
  if (folder.empty()) return std::unique_ptr<OutputRoot>();
  return OutputRoot::confine(folder);
}

Result<std::vector<RedisOptions>> redis_servers(const StoreAddress& address,
                                                const StoreTerms& terms) {
  SPEEDO_ASSIGN(const std::vector<RedisAddress> addresses, parse_redis_addresses(address.text()));
  std::vector<RedisOptions> servers;
  for (const RedisAddress& each : addresses) {
    RedisOptions& server = servers.emplace_back();
    server.address = each;
    server.credentials = terms.credentials;
    server.limit = terms.limit;
    server.source = terms.source;
    server.tls = terms.tls;
    server.may_be_open = terms.may_be_open;
    server.opening_attempts_max = terms.opening_attempts_max;
  }
  if (terms.tls.any() && std::ranges::none_of(addresses, &RedisAddress::is_tls)) {
    return usage_error("--redis-tls-ca, -cert and -key are of servers by TLS, and " +
                       address.text() + " is none: write rediss://, or leave them out");
  }
  return servers;
}

OpenStore store_opener(const StoreTerms& terms) {
  return [terms](const StoreAddress& address,
                 const std::string& job) -> Result<std::shared_ptr<ParameterStore>> {
    SPEEDO_ASSIGN(const std::vector<RedisOptions> servers, redis_servers(address, terms));
    return open_redis_store(servers, job);
  };
}

GateFiles gate_files(const GateFlags& flags) {
  return {.token = flags.token_file,
          .certificates = {.certificate = flags.tls_cert,
                           .key = flags.tls_key,
                           .authority = flags.tls_ca},
          .stopped = [] { return stop_requested().has_value(); }};
}

}  // namespace speedo
