#include "main/local_plan.hpp"

#include <map>
#include <utility>

#include "local/core_shares.hpp"

namespace speedo {

namespace {

std::vector<DeviceShare> device_shares(const std::vector<int>& gpus, std::optional<int> master) {
  std::map<int, DeviceShare> shares;
  for (const int gpu : gpus) ++shares[gpu].workers;
  if (master) shares[*master].has_master = true;
  std::vector<DeviceShare> all;
  for (auto& [gpu, share] : shares) {
    share.limit = gpu_memory(gpu);
    all.push_back(std::move(share));
  }
  return all;
}

}  // namespace

std::vector<int> gpus_of_workers(const LocalPlan& plan) {
  std::vector<int> gpus;
  for (std::size_t number = 0; plan.compute.gpu && number < plan.workers; ++number) {
    gpus.push_back(plan.gpus.empty() ? plan.compute.gpu->index
                                     : plan.gpus[number % plan.gpus.size()]);
  }
  return gpus;
}

ClusterPlan cluster_plan(const LocalPlan& plan) {
  ComputeOptions worker = for_plans_of_others(plan.compute), master = worker;
  worker.threads = share_with_master(plan.compute.threads, plan.workers).front();
  master.threads = kMasterThreads;
  if (plan.master_gpu) {
    master.gpu->index = *plan.master_gpu;
  } else {
    master.gpu.reset();
  }
  return {.solver = plan.file.solver,
          .base = plan.file.base,
          .stages = updates_of(plan.stages),
          .worker_parts = trainer_parts(worker),
          .master_parts = trainer_parts(master),
          .workers = plan.workers,
          .devices = device_shares(gpus_of_workers(plan), plan.master_gpu),
          .store = plan.store};
}

}  // namespace speedo
