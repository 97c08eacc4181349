// Descriptions of clusters as they are read: simulate_plan_file.cpp.

#include <fmt/format.h>

#include "measure/simulate/simulate_plan_file.hpp"

namespace speedo {

using sim::ClusterCosts;
using sim::MachineCosts;

namespace {

std::string quoted(const std::string& text) {
  std::string quotes = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quotes += '\\';
    quotes += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quotes + "\"";
}

std::string list_of(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) {
    text += fmt::format("{}{:.6g}", text.empty() ? "" : ", ", value);
  }
  return "[" + text + "]";
}

std::string list_of(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ", ") + quoted(value);
  return "[" + text + "]";
}

std::string rows_of(const std::vector<sim::BatchCosts>& batches) {
  std::string text;
  for (const sim::BatchCosts& batch : batches) {
    text += fmt::format("{}[{}, {:.6g}]", text.empty() ? "" : ", ", batch.batch, batch.times);
  }
  return "[" + text + "]";
}

std::string rows_of(const std::vector<sim::BucketCosts>& buckets) {
  std::string text = "[";
  for (const sim::BucketCosts& bucket : buckets) {
    text += fmt::format("\n  [{}, {:.6g}, {:.6g}", bucket.parameters, bucket.needed, bucket.final);
    const FactorShape& shape = bucket.factors;
    if (shape.rows > 0) {
      text += fmt::format(", {}, {}, {}, {:.6g}", shape.rows, shape.height, shape.width,
                          bucket.product);
    }
    text += "],";
  }
  return text + "\n]";
}

std::string worker_table(const sim::WorkerCosts& worker) {
  std::string text = fmt::format("\n[worker]\nrun_seconds = {:.6g}\ncrowded_seconds = {:.6g}\n"
                                 "client_bytes_per_second = {:.6g}\ncodec = {}\n"
                                 "memory_bytes_per_second = {:.6g}\n",
                                 worker.run_seconds, worker.crowded_seconds,
                                 worker.client_bytes_per_second, quoted(worker.codec),
                                 worker.memory_bytes_per_second);
  if (worker.shares_memory) text += fmt::format("shared_memory = {}\n", *worker.shares_memory);
  return text;
}

std::string codec_tables(const std::vector<sim::CodecCosts>& codecs) {
  std::string text;
  for (const sim::CodecCosts& codec : codecs) {
    text += fmt::format("\n[[codec]]\nname = {}\nratio = {:.6g}\n"
                        "encode_bytes_per_second = {:.6g}\ndecode_bytes_per_second = {:.6g}\n",
                        quoted(codec.name), codec.ratio, codec.encode_bytes_per_second,
                        codec.decode_bytes_per_second);
  }
  return text;
}

}  // namespace

std::string to_toml(const ClusterCosts& cluster, const std::string& origin) {
  std::string text = fmt::format("# {}\ntitle = {}\n", origin, quoted(cluster.title));
  const sim::NetCosts& net = cluster.net;
  text += fmt::format(
      "\n[net]\nparameters = {}\nbatch = {}\nhistories = {}\nupdate = {:.6g}\nclips = {}\n",
      net.parameters, net.batch, net.histories, net.update, net.clips);
  if (!net.buckets.empty()) text += "buckets = " + rows_of(net.buckets) + "\n";
  if (!net.batches.empty()) text += "batches = " + rows_of(net.batches) + "\n";
  for (const MachineCosts& machine : cluster.machines) {
    text += fmt::format(
        "\n[[machine]]\nname = {}\ncount = {}\ncores = {:.6g}\nstep_seconds = {}\n"
        "step_spread = {:.6g}\nthreads = {}\nworkers_max = {}\nbytes_per_second = {:.6g}\n"
        "mixed = {:.6g}\n",
        quoted(machine.name), machine.count, machine.cores, list_of(machine.step_seconds),
        machine.step_spread, machine.threads, machine.workers_max, machine.bytes_per_second,
        machine.mixed);
    if (!machine.sharing.empty()) text += "sharing = " + list_of(machine.sharing) + "\n";
  }
  const sim::StoreCosts& store = cluster.store;
  text += fmt::format("\n[network]\nlatency_seconds = {:.6g}\nlocal_latency_seconds = {:.6g}\n",
                      cluster.network.latency_seconds, cluster.network.local_latency_seconds);
  text += fmt::format(
      "\n[store]\nmachine = {}\nrecord_seconds = {:.6g}\nread_bytes_per_second = {:.6g}\n"
      "write_bytes_per_second = {:.6g}\nbusy_record_seconds = {:.6g}\n"
      "busy_read_bytes_per_second = {:.6g}\nbusy_write_bytes_per_second = {:.6g}\n",
      quoted(store.machine), store.record_seconds, store.read_bytes_per_second,
      store.write_bytes_per_second, store.busy_record_seconds, store.busy_read_bytes_per_second,
      store.busy_write_bytes_per_second);
  text += fmt::format("servers = {}\nshards = {}\ncopies = {}\n", store.servers, store.shards,
                      store.copies);
  if (!store.machines.empty()) text += "machines = " + list_of(store.machines) + "\n";
  text += fmt::format(
      "\n[master]\nmachine = {}\nmerge_seconds = {:.6g}\nmerge_bytes_per_second = {:.6g}\n"
      "rule_seconds = {:.6g}\nproduct_seconds = {:.6g}\nmessage_seconds = {:.6g}\n"
      "merges_ahead = {}\n",
      quoted(cluster.master.machine), cluster.master.merge_seconds,
      cluster.master.merge_bytes_per_second, cluster.master.rule_seconds,
      cluster.master.product_seconds, cluster.master.message_seconds, cluster.master.merges_ahead);
  return text + worker_table(cluster.worker) + codec_tables(cluster.codecs);
}

}  // namespace speedo
