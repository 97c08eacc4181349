// `speedo jobs`: what jobs have on Redis servers, and the removal of one that is not wanted.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <speedo/store/listed_jobs.hpp>

#include "base/json_text.hpp"
#include "base/log.hpp"
#include "base/memory_limit.hpp"
#include "cli/flags/redis_tls_flags.hpp"
#include "cli/password_source.hpp"
#include "cli/report/console.hpp"
#include "cli/signals.hpp"
#include "main/commands.hpp"
#include "main/parts.hpp"
#include "main/program_options.hpp"
#include "train/job/job_remains.hpp"

namespace speedo {
namespace {

struct Row {
  ListedJob job;
  JobRemains remains;
  std::string fault;  // why its weights cannot be looked at; empty: they can
};

const char* state_of(const Row& row) {
  if (row.job.has_master) return "running";
  return row.remains.is_over ? "over" : "left";
}

Result<std::vector<Row>> look_at_jobs(const std::vector<RedisOptions>& servers) {
  SPEEDO_ASSIGN(std::vector<ListedJob> jobs, list_jobs(servers));
  std::vector<Row> rows;
  for (ListedJob& job : jobs) {
    SPEEDO_ASSIGN(const std::shared_ptr<ParameterStore> store,
                  open_redis_store(servers, job.name));
    Row row{.job = std::move(job), .remains = {}, .fault = {}};
    if (const auto remains = look_at_remains(*store)) {
      row.remains = *remains;
    } else {
      row.fault = remains.error().message;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void print_table(const std::vector<Row>& rows) {
  std::size_t width = 8;
  for (const Row& row : rows) width = std::max(width, row.job.name.size());
  std::string text =
      fmt::format("{:{}}  {:>8}  {:>9}  {:>10}  STATE\n", "JOB", width, "KEYS", "ITERATION",
                  "STORED");
  for (const Row& row : rows) {
    const auto& iteration = row.remains.iteration;
    const auto bytes = static_cast<std::int64_t>(row.remains.floats * sizeof(float));
    text += fmt::format("{:{}}  {:>8}  {:>9}  {:>10}  {}{}{}\n", row.job.name, width, row.job.keys,
                        iteration ? std::to_string(*iteration) : "-",
                        bytes > 0 ? format_bytes(bytes) : "-", state_of(row),
                        row.fault.empty() ? "" : ": ", row.fault);
  }
  std::fputs(text.c_str(), stdout);
}

void print_json(const std::vector<Row>& rows) {
  auto jobs = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json job = {{"job", row.job.name},
                                  {"keys", row.job.keys},
                                  {"iteration", nullptr},
                                  {"stored_bytes", row.remains.floats * sizeof(float)},
                                  {"state", state_of(row)}};
    if (row.remains.iteration) job["iteration"] = *row.remains.iteration;
    if (!row.fault.empty()) job["error"] = row.fault;
    jobs.push_back(std::move(job));
  }
  std::printf("%s\n", json_text(nlohmann::ordered_json{{"jobs", std::move(jobs)}}).c_str());
}

Error no_such_job(const std::string& name, const std::vector<ListedJob>& jobs) {
  std::string names;
  for (const ListedJob& job : jobs) names += (names.empty() ? "" : ", ") + job.name;
  return {ErrorCode::kNotFound, fmt::format("there is no job '{}': {}", name,
                                            names.empty() ? "there is none at all" : names)};
}

// A job on more servers than these would leave there what nobody finds any more.
Result<void> remove_job(const std::vector<RedisOptions>& servers, const std::string& name) {
  SPEEDO_ASSIGN(const std::vector<ListedJob> jobs, list_jobs(servers));
  const auto job = std::ranges::find(jobs, name, &ListedJob::name);
  if (job == jobs.end()) return no_such_job(name, jobs);
  SPEEDO_ASSIGN(const std::shared_ptr<ParameterStore> store, open_redis_store(servers, name));
  const auto remains = look_at_remains(*store);
  if (!remains && remains.error().code != ErrorCode::kCorrupt) return remains.error();
  SPEEDO_TRY(store->check_places());
  SPEEDO_TRY(remove_remains(store, name, [] {
    return stop_requested() ? std::optional<std::string>("a signal") : std::nullopt;
  }));
  SPEEDO_INFO("Removed the job '{}': {} keys", name, job->keys);
  return {};
}

}  // namespace

Result<int> jobs_command(const CommandLine& line) {
  OptionValues values(Program::kJobs);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  std::string redis, password_file, removed;
  bool json = false;
  values.get("redis", redis);
  values.get("redis-password-file", password_file);
  values.get("remove", removed);
  values.get("json", json);
  if (values.given("remove") && removed.empty()) {
    return usage_error("--remove is empty: name the job that is to be removed");
  }
  set_up_console(false);
  StoreTerms terms{.may_be_open = true};
  SPEEDO_ASSIGN(terms.tls, redis_tls_files(values));
  SPEEDO_ASSIGN(terms.credentials, redis_credentials(password_file, line.secrets));
  SPEEDO_ASSIGN(const std::vector<RedisOptions> servers, redis_servers(StoreAddress(redis), terms));
  if (!removed.empty()) {
    SPEEDO_TRY(remove_job(servers, removed));
    return 0;
  }
  SPEEDO_ASSIGN(const std::vector<Row> rows, look_at_jobs(servers));
  json ? print_json(rows) : print_table(rows);
  return 0;
}

}  // namespace speedo
