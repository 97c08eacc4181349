// Features extracted by several processes: each computes a range of batches at a time and writes
// what it finds to standard output; this one puts all in order into the databases.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.hpp"
#include "base/parse_number.hpp"
#include "base/whole_path.hpp"
#include "cli/hosts_file.hpp"
#include "cli/options/read_options.hpp"
#include "cli/signals.hpp"
#include "data/dataset_writer.hpp"
#include "local/local_cluster.hpp"
#include "local/temporary_folder.hpp"
#include "main/commands/extract_features_flags.hpp"
#include "tools/feature_stream.hpp"
#include "tools/feature_writer.hpp"

namespace speedo {

namespace {

// Parts are several times as many as workers, so that slow ones hold up the others little.
constexpr std::int64_t kPartsPerWorker = 4;

// What a worker is told, but for its part and its threads.
std::vector<std::string> part_arguments(const FeatureFlags& flags, const std::string& program,
                                        int loop_parts) {
  std::vector<std::string> words = {program,
                                    "extract_features",
                                    flags.net.weights,
                                    flags.net.model,
                                    fmt::format("{}", fmt::join(flags.blobs, ",")),
                                    fmt::format("{}", fmt::join(flags.databases, ",")),
                                    std::to_string(flags.batches),
                                    flags.backend,
                                    fmt::format("--loop-parts={}", loop_parts),
                                    kNoConfig};
  for (std::string& word : to_arguments(flags.compute)) words.push_back(std::move(word));
  for (std::string& word : to_arguments(flags.remote)) words.push_back(std::move(word));
  for (std::string& word : to_arguments(flags.parser)) words.push_back(std::move(word));
  return words;
}

std::vector<std::string> with_part(std::vector<std::string> words, const WorkPart& part,
                                   int threads) {
  words.push_back(fmt::format("--part={}:{}", part.first, part.count));
  words.push_back(fmt::format("--threads={}", threads));
  return words;
}

PartWorker local_worker(const FeatureFlags& flags, std::int64_t number, int threads,
                        int loop_parts) {
  const auto words = part_arguments(flags, own_program("speedo"), loop_parts);
  return {fmt::format("worker{}", number), [words, threads](const WorkPart& part) {
            ChildCommand command;
            command.arguments = with_part(words, part, threads);
            return command;
          }};
}

// A hosts file names the program of workers of a cluster, beside which `speedo` lies.
std::string speedo_beside(std::string program) {
  constexpr std::string_view kWorkerSuffix = "-worker";
  if (program.ends_with("speedo-worker")) program.resize(program.size() - kWorkerSuffix.size());
  return program;
}

PartWorker remote_worker(const FeatureFlags& flags, const Host& host, std::uint64_t number,
                         int loop_parts) {
  const auto words = part_arguments(flags, speedo_beside(host.program), loop_parts);
  const int threads =
      host.threads == 0 ? loop_parts : std::max(1, host.threads / static_cast<int>(host.workers));
  return {fmt::format("{} worker{}", label(host), number),
          [shell = flags.shell, host, words, threads](const WorkPart& part) {
            return remote_program(shell, host, with_part(words, part, threads));
          }};
}

Result<std::vector<PartWorker>> make_workers(const FeatureFlags& flags, int threads) {
  std::vector<PartWorker> workers;
  if (flags.hosts.empty()) {
    const int each = std::max(1, threads / static_cast<int>(flags.workers));
    for (std::int64_t i = 0; i < flags.workers; ++i) {
      workers.push_back(local_worker(flags, i, each, threads));
    }
    return workers;
  }
  SPEEDO_ASSIGN(const std::vector<Host> hosts, read_hosts_file(flags.hosts));
  for (const Host& host : hosts) {
    for (std::uint64_t i = 0; i < host.workers; ++i) {
      workers.push_back(remote_worker(flags, host, i, threads));
    }
  }
  return workers;
}

// The databases, as workers' records fill them.
class Collector {
 public:
  static Result<Collector> create(const FeatureFlags& flags) {
    Collector made;
    for (const std::string& database : flags.databases) {
      ConvertOptions output = flags.output;
      output.output = database;
      SPEEDO_ASSIGN(made.writers_.emplace_back(), make_database_writer(output));
    }
    made.counts_.resize(made.writers_.size());
    return made;
  }

  Result<void> take(const std::filesystem::path& made) {
    return read_feature_stream(made, [this](std::uint32_t blob, std::string datum) -> Result<void> {
      if (blob >= writers_.size()) {
        return Error{ErrorCode::kCorrupt, fmt::format("features of a blob {} came", blob)};
      }
      return writers_[blob]->put(feature_key(counts_[blob]++), std::move(datum));
    });
  }

  Result<void> commit(const std::vector<std::string>& blobs) {
    for (std::size_t i = 0; i < writers_.size(); ++i) {
      SPEEDO_TRY(writers_[i]->commit());
      SPEEDO_INFO("Extracted features of {} query images for feature blob {}", counts_[i],
                  blobs[i]);
    }
    return {};
  }

 private:
  std::vector<std::unique_ptr<DatabaseWriter>> writers_;
  std::vector<std::int64_t> counts_;
};

Result<WorkPart> parse_part(const std::string& text, std::int64_t batches) {
  const std::size_t colon = text.find(':');
  const auto first = parse_number<std::int64_t>(text.substr(0, colon));
  const auto count = colon == std::string::npos
                         ? std::nullopt
                         : parse_number<std::int64_t>(text.substr(colon + 1));
  if (first && count && *first >= 0 && *count > 0 && *first <= batches - *count) {
    return WorkPart{*first, *count};
  }
  return usage_error("--part takes FIRST:COUNT within the batches, not '" + text + "'");
}

}  // namespace

Result<FeatureFlags> feature_flags(const OptionValues& values) {
  FeatureFlags flags;
  std::string blobs, databases, part, ssh_options;
  flags.net = net_flags(values);
  flags.compute = compute_flags(values);
  flags.remote = remote_flags(values);
  flags.parser = parser_flags(values);
  values.get("blobs", blobs);
  values.get("databases", databases);
  values.get("batches", flags.batches);
  values.get("backend", flags.backend);
  values.get("device", flags.device);
  values.get("device-id", flags.device_id);
  values.get("force", flags.output.force);
  values.get("workers", flags.workers);
  values.get("hosts", flags.hosts);
  values.get("ssh", flags.shell.program);
  values.get("ssh-options", ssh_options);
  values.get("part", part);
  values.get("loop-parts", flags.loop_parts);
  flags.shell.options = split_at_blanks(ssh_options);
  flags.blobs = split_at_commas(blobs);
  flags.databases = split_at_commas(databases);
  flags.output.format = record_format_named(flags.backend);
  if (flags.blobs.size() != flags.databases.size()) {
    return usage_error(fmt::format("{} blobs are named, but {} databases: give one for each",
                                   flags.blobs.size(), flags.databases.size()));
  }
  std::set<std::filesystem::path> distinct;
  for (const std::string& database : flags.databases) distinct.insert(whole_path(database));
  if (distinct.size() != flags.databases.size()) {
    return usage_error("one database is named twice: each blob needs one of its own");
  }
  if (!flags.hosts.empty() && values.given("workers")) {
    return usage_error("--workers are of this machine, --hosts names others with theirs: give one");
  }
  if (!part.empty()) {
    SPEEDO_ASSIGN(flags.part, parse_part(part, flags.batches));
  }
  return flags;
}

Result<void> extract_in_parts(const FeatureFlags& flags) {
  SPEEDO_ASSIGN(const ComputeOptions compute, settle(flags.compute));
  const int threads = std::max(compute.threads, flags.loop_parts);
  PartedWork work;
  SPEEDO_ASSIGN(work.workers, make_workers(flags, threads));
  SPEEDO_ASSIGN(work.folder, make_temporary_folder("speedo-features"));
  SPEEDO_ASSIGN(Guardian guardian, Guardian::create(work.folder));  // before there are threads
  Children children(std::move(guardian));
  SPEEDO_ASSIGN(Collector collector, Collector::create(flags));
  work.pieces = flags.batches;
  const auto parts = kPartsPerWorker * static_cast<std::int64_t>(work.workers.size());
  work.pieces_a_part = std::max<std::int64_t>(1, flags.batches / parts);
  work.take = [&](const WorkPart& /*part*/, const std::filesystem::path& made) {
    return collector.take(made);
  };
  work.stopped = [] { return stop_requested().has_value(); };
  SPEEDO_INFO("Extracting Features with {} workers", work.workers.size());
  SPEEDO_TRY(do_parted_work(work, children));
  SPEEDO_TRY(collector.commit(flags.blobs));
  SPEEDO_INFO("Successfully extracted the features!");
  return {};
}

}  // namespace speedo
