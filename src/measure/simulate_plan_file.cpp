#include "measure/simulate_plan_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include <fmt/format.h>

// The same in every source that includes it: the library's functions differ with it.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <speedo/base/file.hpp>

#include "cli/arguments.hpp"
#include "cli/exit_code.hpp"

namespace speedo {

using sim::ClusterCosts;
using sim::MachineCosts;

namespace {

Error at(const std::string& file, const toml::source_position& place, const std::string& what) {
  return {ErrorCode::kConfig, fmt::format("{}:{}:{}: {}", file, place.line, place.column, what)};
}

// The keys of one table. Every key is asked for once; the first fault is kept.
class Keys {
 public:
  Keys(const std::string& file, const toml::table& table, std::string name)
      : file_(file), table_(table), name_(std::move(name)) {}

  void text(const char* key, std::string& target) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    if (const auto value = node->value_exact<std::string>()) {
      target = *value;
    } else {
      fail(*node, fmt::format("{} must be a text", key));
    }
  }

  void count(const char* key, std::uint64_t min, std::uint64_t& target) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const auto value = node->value_exact<std::int64_t>();
    if (!value || *value < 0 || static_cast<std::uint64_t>(*value) < min) {
      fail(*node, fmt::format("{} must be a whole number of at least {}", key, min));
    } else {
      target = static_cast<std::uint64_t>(*value);
    }
  }

  // Zero is allowed unless `positive`.
  void amount(const char* key, bool positive, double& target) {
    const toml::node* node = find(key);
    if (node != nullptr) read_amount(*node, key, positive, target);
  }

  // A number or a list of them.
  void amounts(const char* key, std::vector<double>& target) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    target.clear();
    const toml::array* list = node->as_array();
    if (list == nullptr) {
      read_amount(*node, key, true, target.emplace_back());
      return;
    }
    for (const toml::node& each : *list) read_amount(each, key, true, target.emplace_back());
    if (list->empty()) fail(*node, fmt::format("{} is an empty list", key));
  }

  void flag(const char* key, bool& target) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    if (const auto value = node->value_exact<bool>()) {
      target = *value;
    } else {
      fail(*node, fmt::format("{} must be true or false", key));
    }
  }

  // A list of buckets, each a list of its floats and two moments.
  void buckets(const char* key, std::vector<sim::BucketCosts>& target) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    if (list == nullptr) return fail(*node, fmt::format("{} must be a list of lists", key));
    for (const toml::node& each : *list) {
      const toml::array* row = each.as_array();
      if (row == nullptr || row->size() != 3) {
        return fail(each, fmt::format("{} must be lists of 3 numbers", key));
      }
      sim::BucketCosts bucket;
      const auto floats = (*row)[0].value_exact<std::int64_t>();
      if (!floats || *floats < 1) {
        return fail((*row)[0], "a bucket has a whole number of floats, at least 1");
      }
      bucket.parameters = static_cast<std::uint64_t>(*floats);
      read_amount((*row)[1], "a bucket's first use", false, bucket.needed);
      read_amount((*row)[2], "a bucket's end", false, bucket.final);
      target.push_back(bucket);
    }
  }

  void require(const char* key) {
    if (table_.contains(key) || error_) return;
    error_ = at(file_, table_.source().begin, fmt::format("{} has no {}", name_, key));
  }

  const toml::node* find(const char* key) {
    known_.emplace_back(key);
    return table_.get(key);
  }

  void fail(const toml::node& node, const std::string& what) {
    if (!error_) error_ = at(file_, node.source().begin, name_ + ": " + what);
  }

  // After all keys were asked for.
  Result<void> end() {
    for (const auto& [key, node] : table_) {
      const std::string word(key.str());
      if (error_ || std::find(known_.begin(), known_.end(), word) != known_.end()) continue;
      const std::string near = nearest(word, known_);
      error_ = at(file_, key.source().begin,
                  fmt::format("{}: unknown key '{}'{}", name_, word,
                              near.empty() ? "" : ", did you mean " + near + "?"));
    }
    if (error_) return *error_;
    return {};
  }

 private:
  void read_amount(const toml::node& node, const char* key, bool positive, double& target) {
    std::optional<double> value = node.value_exact<double>();
    if (!value) {
      if (const auto whole = node.value_exact<std::int64_t>()) value = static_cast<double>(*whole);
    }
    const bool fits = value && std::isfinite(*value) && (positive ? *value > 0.0 : *value >= 0.0);
    if (fits) {
      target = *value;
    } else {
      fail(node, fmt::format("{} must be a number {}", key,
                             positive ? "greater than 0" : "of at least 0"));
    }
  }

  const std::string& file_;
  const toml::table& table_;
  const std::string name_;
  std::vector<std::string> known_;
  std::optional<Error> error_;
};

// Reads the table of that name with `read`. Absent: nothing to do, unless it is required.
template <class Read>
Result<void> read_table(const std::string& file, const toml::table& root, Keys& top,
                        const char* key, bool required, const Read& read) {
  const toml::node* node = top.find(key);
  if (node == nullptr) {
    if (!required) return {};
    return at(file, root.source().begin, fmt::format("the description has no [{}]", key));
  }
  const toml::table* table = node->as_table();
  if (table == nullptr) {
    return at(file, node->source().begin, fmt::format("{} must be a table, [{}]", key, key));
  }
  Keys keys(file, *table, fmt::format("[{}]", key));
  read(keys);
  return keys.end();
}

Result<MachineCosts> read_machine(const std::string& file, const toml::table& table) {
  MachineCosts machine;
  Keys keys(file, table, "[[machine]]");
  keys.text("name", machine.name);
  keys.count("count", 1, machine.count);
  keys.amount("cores", true, machine.cores);
  keys.amounts("step_seconds", machine.step_seconds);
  keys.amount("step_spread", false, machine.step_spread);
  keys.count("threads", 0, machine.threads);
  keys.amounts("sharing", machine.sharing);
  keys.amount("mixed", true, machine.mixed);
  keys.count("workers_max", 0, machine.workers_max);
  keys.amount("bytes_per_second", false, machine.bytes_per_second);
  keys.require("name");
  keys.require("step_seconds");
  if (machine.step_spread > sim::kStepSpreadMax) {
    keys.fail(*keys.find("step_spread"),
              fmt::format("step_spread must be at most {}", sim::kStepSpreadMax));
  }
  for (const double seconds : machine.step_seconds) {
    if (seconds >= sim::kStepSecondsMin) continue;
    keys.fail(*keys.find("step_seconds"),
              fmt::format("step_seconds must be at least {}", sim::kStepSecondsMin));
  }
  SPEEDO_TRY(keys.end());
  return machine;
}

Result<void> read_machines(const std::string& file, const toml::table& root, Keys& top,
                           ClusterCosts& cluster) {
  const toml::node* node = top.find("machine");
  if (node == nullptr) {
    return at(file, root.source().begin, "the description has no [[machine]]");
  }
  const toml::array* list = node->as_array();
  if (list == nullptr || !list->is_homogeneous(toml::node_type::table)) {
    return at(file, node->source().begin, "machines are written as [[machine]]");
  }
  for (const toml::node& each : *list) {
    SPEEDO_ASSIGN(MachineCosts machine, read_machine(file, *each.as_table()));
    for (const MachineCosts& other : cluster.machines) {
      if (other.name != machine.name) continue;
      return at(file, each.source().begin, "another machine is named '" + machine.name + "'");
    }
    cluster.machines.push_back(std::move(machine));
  }
  return {};
}

Result<void> read_parts(const std::string& file, const toml::table& root, Keys& top,
                        ClusterCosts& cluster) {
  SPEEDO_TRY(read_table(file, root, top, "net", true, [&](Keys& keys) {
    keys.count("parameters", 1, cluster.net.parameters);
    keys.count("batch", 1, cluster.net.batch);
    keys.count("histories", 0, cluster.net.histories);
    keys.buckets("buckets", cluster.net.buckets);
    keys.amount("update", false, cluster.net.update);
    keys.flag("clips", cluster.net.clips);
    keys.require("parameters");
    keys.require("batch");
  }));
  SPEEDO_TRY(read_machines(file, root, top, cluster));
  // Where the store and the master run, unless told otherwise.
  cluster.store.machine = cluster.master.machine = cluster.machines.front().name;
  const auto machine = [&](Keys& keys, std::string& name) {
    keys.text("machine", name);
    for (const MachineCosts& each : cluster.machines) {
      if (each.name == name) return;
    }
    keys.fail(*keys.find("machine"), "no machine is named '" + name + "'");
  };
  SPEEDO_TRY(read_table(file, root, top, "network", false, [&](Keys& keys) {
    keys.amount("latency_seconds", false, cluster.network.latency_seconds);
    keys.amount("local_latency_seconds", false, cluster.network.local_latency_seconds);
  }));
  SPEEDO_TRY(read_table(file, root, top, "store", false, [&](Keys& keys) {
    sim::StoreCosts& store = cluster.store;
    machine(keys, store.machine);
    keys.amount("record_seconds", false, store.record_seconds);
    keys.amount("read_bytes_per_second", false, store.read_bytes_per_second);
    keys.amount("write_bytes_per_second", false, store.write_bytes_per_second);
    keys.amount("busy_record_seconds", false, store.busy_record_seconds);
    keys.amount("busy_read_bytes_per_second", false, store.busy_read_bytes_per_second);
    keys.amount("busy_write_bytes_per_second", false, store.busy_write_bytes_per_second);
  }));
  SPEEDO_TRY(read_table(file, root, top, "master", false, [&](Keys& keys) {
    machine(keys, cluster.master.machine);
    keys.amount("merge_seconds", false, cluster.master.merge_seconds);
    keys.amount("merge_bytes_per_second", false, cluster.master.merge_bytes_per_second);
    keys.amount("rule_seconds", false, cluster.master.rule_seconds);
    keys.amount("message_seconds", false, cluster.master.message_seconds);
    keys.flag("merges_ahead", cluster.master.merges_ahead);
  }));
  return read_table(file, root, top, "worker", false, [&](Keys& keys) {
    keys.amount("run_seconds", false, cluster.worker.run_seconds);
    keys.amount("crowded_seconds", false, cluster.worker.crowded_seconds);
    keys.amount("client_bytes_per_second", false, cluster.worker.client_bytes_per_second);
  });
}

std::string list_of(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) {
    text += fmt::format("{}{:.6g}", text.empty() ? "" : ", ", value);
  }
  return "[" + text + "]";
}

std::string rows_of(const std::vector<sim::BucketCosts>& buckets) {
  std::string text = "[";
  for (const sim::BucketCosts& bucket : buckets) {
    text += fmt::format("\n  [{}, {:.6g}, {:.6g}],", bucket.parameters, bucket.needed,
                        bucket.final);
  }
  return text + "\n]";
}

std::string quoted(const std::string& text) {
  std::string quotes = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quotes += '\\';
    quotes += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quotes + "\"";
}

}  // namespace

Result<ClusterCosts> parse_cluster(const std::string& text, const std::string& file) {
  toml::parse_result parsed = toml::parse(text, file);
  if (!parsed) {
    return at(file, parsed.error().source().begin, std::string(parsed.error().description()));
  }
  const toml::table& root = parsed.table();
  ClusterCosts cluster;
  Keys top(file, root, "the description");
  top.text("title", cluster.title);
  SPEEDO_TRY(read_parts(file, root, top, cluster));
  SPEEDO_TRY(top.end());
  if (auto checked = sim::check(cluster); !checked) {
    return Error{ErrorCode::kConfig, file + ": " + checked.error().message};
  }
  return cluster;
}

Result<ClusterCosts> read_cluster(const std::filesystem::path& file) {
  const auto text = read_file(file);
  if (!text) {
    return Error{unless_refused(text.error().code, ErrorCode::kConfig), text.error().message};
  }
  return parse_cluster(*text, file.string());
}

std::string to_toml(const ClusterCosts& cluster, const std::string& origin) {
  std::string text = fmt::format("# {}\ntitle = {}\n", origin, quoted(cluster.title));
  const sim::NetCosts& net = cluster.net;
  text += fmt::format(
      "\n[net]\nparameters = {}\nbatch = {}\nhistories = {}\nupdate = {:.6g}\nclips = {}\n",
      net.parameters, net.batch, net.histories, net.update, net.clips);
  if (!net.buckets.empty()) text += "buckets = " + rows_of(net.buckets) + "\n";
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
  text += fmt::format(
      "\n[master]\nmachine = {}\nmerge_seconds = {:.6g}\nmerge_bytes_per_second = {:.6g}\n"
      "rule_seconds = {:.6g}\nmessage_seconds = {:.6g}\nmerges_ahead = {}\n",
      quoted(cluster.master.machine), cluster.master.merge_seconds,
      cluster.master.merge_bytes_per_second, cluster.master.rule_seconds,
      cluster.master.message_seconds, cluster.master.merges_ahead);
  return text + fmt::format("\n[worker]\nrun_seconds = {:.6g}\ncrowded_seconds = {:.6g}\n"
                            "client_bytes_per_second = {:.6g}\n",
                            cluster.worker.run_seconds, cluster.worker.crowded_seconds,
                            cluster.worker.client_bytes_per_second);
}

}  // namespace speedo
