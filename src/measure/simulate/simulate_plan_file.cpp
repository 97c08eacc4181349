#include "measure/simulate/simulate_plan_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <speedo/base/file.hpp>

#include "cli/arguments.hpp"
#include "cli/exit_code.hpp"
#include "cli/options/toml_parse.hpp"

namespace speedo {

using sim::ClusterCosts;
using sim::MachineCosts;

namespace {

Error at(const std::string& file, const toml::source_position& place, const std::string& what) {
  return {ErrorCode::kConfig, place_of(file, place) + ": " + what};
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
    std::optional<bool> value;
    flag(key, value);
    target = value.value_or(target);
  }
  void flag(const char* key, std::optional<bool>& target) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    target = node->value_exact<bool>();
    if (!target) fail(*node, fmt::format("{} must be true or false", key));
  }

  // A text or a list of them.
  void texts(const char* key, std::vector<std::string>& target) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    if (const auto value = node->value_exact<std::string>()) return target.assign({*value});
    const toml::array* list = node->as_array();
    if (list == nullptr) return fail(*node, fmt::format("{} must be a list of texts", key));
    for (const toml::node& each : *list) {
      const auto value = each.value_exact<std::string>();
      if (!value) return fail(each, fmt::format("{} must be a list of texts", key));
      target.push_back(*value);
    }
  }

  // Calls visit(row) for each row of a list of lists of so many numbers, or of `or_numbers`, until
  // one returns false.
  template <class Visit>
  void for_rows(const char* key, std::size_t numbers, std::size_t or_numbers,
                const Visit& visit) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    if (list == nullptr) return fail(*node, fmt::format("{} must be a list of lists", key));
    for (const toml::node& each : *list) {
      const toml::array* row = each.as_array();
      if (row == nullptr || (row->size() != numbers && row->size() != or_numbers)) {
        const std::string also = or_numbers == numbers ? "" : fmt::format(" or {}", or_numbers);
        return fail(each, fmt::format("{} must be lists of {}{} numbers", key, numbers, also));
      }
      if (!visit(*row)) return;
    }
  }

  // A list of batches, each a list of its images and how many times as long they take.
  void batches(const char* key, std::vector<sim::BatchCosts>& target) {
    for_rows(key, 2, 2, [&](const toml::array& row) {
      const auto images = row[0].value_exact<std::int64_t>();
      if (!images || *images < 1) {
        fail(row[0], "a batch has a whole number of images, at least 1");
        return false;
      }
      sim::BatchCosts batch{.batch = static_cast<std::uint64_t>(*images)};
      read_amount(row[1], "how many times as long a batch takes", true, batch.times);
      target.push_back(batch);
      return true;
    });
  }

  // A list of buckets, each a list of its floats and two moments, and perhaps its product's rows,
  // height, width and time.
  void buckets(const char* key, std::vector<sim::BucketCosts>& target) {
    for_rows(key, 3, 7, [&](const toml::array& row) {
      sim::BucketCosts bucket;
      const auto floats = row[0].value_exact<std::int64_t>();
      if (!floats || *floats < 1) {
        fail(row[0], "a bucket has a whole number of floats, at least 1");
        return false;
      }
      bucket.parameters = static_cast<std::uint64_t>(*floats);
      read_amount(row[1], "a bucket's first use", false, bucket.needed);
      read_amount(row[2], "a bucket's end", false, bucket.final);
      if (row.size() > 3) {
        if (!read_product(row, bucket.factors)) return false;
        read_amount(row[6], "a bucket's product", false, bucket.product);
      }
      target.push_back(bucket);
      return true;
    });
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
  bool read_product(const toml::array& row, FactorShape& shape) {
    std::size_t place = 3;
    for (std::int64_t* const side : {&shape.rows, &shape.height, &shape.width}) {
      const auto value = row[place].value_exact<std::int64_t>();
      if (!value || *value < 1) {
        fail(row[place], "a bucket's product has whole numbers of rows, height and width");
        return false;
      }
      *side = *value;
      place += 1;
    }
    return true;
  }

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

Result<void> read_codecs(const std::string& file, Keys& top, ClusterCosts& cluster) {
  const toml::node* node = top.find("codec");
  if (node == nullptr) return {};
  const toml::array* list = node->as_array();
  if (list == nullptr || !list->is_homogeneous(toml::node_type::table)) {
    return at(file, node->source().begin, "codecs are written as [[codec]]");
  }
  for (const toml::node& each : *list) {
    sim::CodecCosts codec;
    Keys keys(file, *each.as_table(), "[[codec]]");
    keys.text("name", codec.name);
    keys.amount("ratio", true, codec.ratio);
    keys.amount("encode_bytes_per_second", false, codec.encode_bytes_per_second);
    keys.amount("decode_bytes_per_second", false, codec.decode_bytes_per_second);
    keys.require("name");
    keys.require("ratio");
    SPEEDO_TRY(keys.end());
    cluster.codecs.push_back(std::move(codec));
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
    keys.batches("batches", cluster.net.batches);
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
    keys.count("servers", 1, store.servers);
    keys.count("shards", 0, store.shards);
    keys.texts("machines", store.machines);
    keys.flag("copies", store.copies);
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
    keys.amount("product_seconds", false, cluster.master.product_seconds);
    keys.amount("message_seconds", false, cluster.master.message_seconds);
    keys.flag("merges_ahead", cluster.master.merges_ahead);
  }));
  SPEEDO_TRY(read_codecs(file, top, cluster));
  return read_table(file, root, top, "worker", false, [&](Keys& keys) {
    keys.text("codec", cluster.worker.codec);
    keys.flag("shared_memory", cluster.worker.shares_memory);
    keys.amount("memory_bytes_per_second", false, cluster.worker.memory_bytes_per_second);
    keys.amount("run_seconds", false, cluster.worker.run_seconds);
    keys.amount("crowded_seconds", false, cluster.worker.crowded_seconds);
    keys.amount("client_bytes_per_second", false, cluster.worker.client_bytes_per_second);
  });
}

}  // namespace

Result<ClusterCosts> parse_cluster(const std::string& text, const std::string& file) {
  SPEEDO_ASSIGN(const toml::table root, parse_toml(text, file));
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

}  // namespace speedo
