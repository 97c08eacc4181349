#include "measure/memory_forecast.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include <speedo/backend/backend.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/codec/codec.hpp>

#include "main/parts.hpp"
#include "measure/memory_guard.hpp"
#include "measure/store_need.hpp"
#include "support/catch.hpp"
#include "support/gpu/gpu_double.hpp"
#include "train/job/job_solver.hpp"

namespace speedo {
namespace {

// What a forecast is made with.
struct Machine {
  explicit Machine(TrainerParts of = trainer_parts({.threads = 1}))
      : parts(std::move(of)), backend(parts.make_backend().value()), feeds(parts.make_feeds()) {}
  SolverOptions options() const {
    return {.backend = backend.get(), .feeds = feeds.get(), .base = {}};
  }
  TrainerParts parts;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<FeedFactory> feeds;
};

JobSpec job_of(const std::string& fields, int batch = 8) {
  JobSpec job;
  const std::string rows = std::to_string(batch);
  job.solver_text = "base_lr: 0.1 lr_policy: 'fixed' random_seed: 1 " + fields + R"( net_param {
      name: "noise"
      layer { name: "data" type: "DummyData" top: "data" top: "label"
              dummy_data_param { shape { dim: )" + rows + " dim: 12 } shape { dim: " + rows + R"( }
                                 data_filler { type: "gaussian" }
                                 data_filler { type: "constant" } } }
      layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
              inner_product_param { num_output: 32 } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" } })";
  return job;
}

caffe::SolverParameter solver_of(const std::string& fields, int batch = 8) {
  return parse_solver(job_of(fields, batch)).value();
}

MemoryForecast forecast_of(const std::string& fields, int batch = 8) {
  const Machine place;
  auto forecast = forecast_training(solver_of(fields, batch), place.options());
  INFO((forecast ? "" : forecast.error().message));
  REQUIRE(forecast);
  return *forecast;
}

TEST_CASE("A forecast has weights, gradients, history, blobs, and a snapshot if one is written") {
  const MemoryForecast plain = forecast_of("snapshot_after_train: false");
  CHECK(plain.weight_bytes >= (12 + 1) * 32 * 4);
  CHECK(plain.weight_grad_bytes == plain.weight_bytes);
  CHECK(plain.history_bytes == plain.weight_bytes);
  CHECK(plain.blob_bytes >= 8 * (12 + 32) * 4);
  CHECK(plain.snapshot_bytes == 0);
  CHECK(plain.base_bytes > 1 << 20);
  CHECK(forecast_of("").snapshot_bytes == 3 * plain.weight_bytes);
  const std::string text = to_text(plain);
  CHECK(text.find("their gradients") != std::string::npos);
  CHECK(text.find("snapshots") == std::string::npos);

  const nlohmann::ordered_json object = to_json(plain);
  std::int64_t sum = 0;
  for (const auto& [key, value] : object.items()) {
    if (key != "total_bytes") sum += value.get<std::int64_t>();
  }
  CHECK(object["total_bytes"] == sum);
  CHECK(plain.total_bytes() == sum);
}

TEST_CASE("A solver with two histories takes one more, as a worker and as the master") {
  for (const char* type : {"SGD", "AdaGrad", "AdaDelta", "Adam"}) {
    INFO(type);
    const std::string fields = std::string("type: '") + type + "'";
    const std::int64_t histories = type[0] == 'S' || type[3] == 'G' ? 1 : 2;
    const MemoryForecast forecast = forecast_of(fields);
    CHECK(forecast.history_bytes == histories * forecast.weight_bytes);
    CHECK(forecast.snapshot_bytes == (1 + 2 * histories) * forecast.weight_bytes);
    MasterOptions deltas, gradients;
    gradients.session.stages[0].update.kind = UpdateKind::kGradientOnly;
    const TrainerParts parts = trainer_parts({.threads = 1});
    const caffe::SolverParameter solver = solver_of(fields);
    const std::int64_t without = admit_master(deltas, solver, parts, {}).value();
    const std::int64_t with = admit_master(gradients, solver, parts, {}).value();
    // But for what the process takes meanwhile.
    CHECK(with - without >= (1 + 4 * histories) * forecast.weight_bytes);
  }
}

TEST_CASE("Larger batches, and tests, take more") {
  const MemoryForecast small = forecast_of("");
  CHECK(forecast_of("", 80).blob_bytes > 5 * small.blob_bytes);
  CHECK(forecast_of("test_iter: 1 test_interval: 10").blob_bytes > small.blob_bytes);
}

TEST_CASE("Workers of one process share only what it takes without them") {
  const MemoryForecast one = forecast_of("");
  const MemoryForecast three = times(one, 3);
  CHECK(three.base_bytes == one.base_bytes);
  CHECK(three.total_bytes() - one.base_bytes == 3 * (one.total_bytes() - one.base_bytes));
}

TEST_CASE("What does not fit is refused with the figures, unless that is forced") {
  const Machine place;
  const MemoryLimit limit{1 << 20, "the limit of a test"};
  const auto refused = admit_training(solver_of(""), place.options(), {false, limit});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kConfig);
  for (const char* part : {"weights", "the limit of a test", "1.0 MiB", "--force"}) {
    INFO(refused.error().message);
    CHECK(refused.error().message.find(part) != std::string::npos);
  }
  CHECK(admit_training(solver_of(""), place.options(), {true, limit}));
  CHECK(admit_training(solver_of(""), place.options(), {}));

  const JobSpec job = job_of("");
  const auto admit = make_memory_guard(2, {false, limit});
  const auto worker = admit(job, solver_of(""), place.options());
  REQUIRE_FALSE(worker);
  CHECK(worker.error().message.find("2 workers") != std::string::npos);
  CHECK(make_memory_guard(2, {true, limit})(job, solver_of(""), place.options()));

  const caffe::SolverParameter solver = solver_of("");
  const TrainerParts parts = trainer_parts({.threads = 1});
  const ClusterPlan plan{solver, {}, {UpdateSpec{}}, parts, parts, 2};
  const auto cluster = check_cluster_memory(plan, {false, limit});
  REQUIRE_FALSE(cluster);
  CHECK(cluster.error().message.find("2 workers of") != std::string::npos);
  const auto fits = check_cluster_memory(plan, {});
  REQUIRE(fits);
  CHECK(*fits > 1 << 20);
}

TEST_CASE("A master's memory is predicted and judged, tests included") {
  const MemoryLimit limit{1 << 20, "the limit of a test"};
  MasterOptions options;
  const TrainerParts parts = trainer_parts({.threads = 1});
  const caffe::SolverParameter solver = solver_of("test_iter: 1 test_interval: 10");
  const auto refused = admit_master(options, solver, parts, {false, limit});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kConfig);
  CHECK(refused.error().message.find("this master") != std::string::npos);
  CHECK(admit_master(options, solver, parts, {true, limit}).value() > 1 << 20);

  options.session.test_interval = 0;
  options.session.test_at_start = false;
  const std::int64_t without = admit_master(options, solver, parts, {}).value();
  options.session.test_interval = 10;
  CHECK(admit_master(options, solver, parts, {}).value() > without);
  options.session.test_interval = 0;
  options.session.stages.front().test_interval = 10;  // of a stage alone
  CHECK(admit_master(options, solver, parts, {}).value() > without);

  caffe::SolverParameter unheard = solver;
  unheard.mutable_net_param()->mutable_layer(1)->set_type("Unheard");
  CHECK(admit_master(options, unheard, parts, {false, limit}).value() == 0);
}

// Of some MiB, so that weights show in figures of a tenth of one.
caffe::SolverParameter large_solver() {
  caffe::SolverParameter solver = solver_of("");
  solver.mutable_net_param()->mutable_layer(1)->mutable_inner_product_param()->set_num_output(
      200000);
  return solver;
}

std::string parts_of(const UpdateSpec& stage, const LocalStore& store) {
  const caffe::SolverParameter solver = large_solver();
  const TrainerParts parts = trainer_parts({.threads = 1});
  const auto demand = predict_cluster({solver, {}, {stage}, parts, parts, 3, {}, store});
  INFO((demand ? "" : demand.error().message));
  REQUIRE(demand);
  return demand->host.parts;
}

bool ends_with_store(const std::string& parts, const StoreNeed& need, std::int64_t servers) {
  CAPTURE(parts);
  const std::string store =
      "the store " + format_bytes(redis_bytes(need.all + servers * need.on_its_way));
  CAPTURE(store);
  CHECK(parts.ends_with(store));
  return parts.ends_with(store);
}

TEST_CASE("A cluster's store is predicted with all copies that it holds, as Redis keeps them") {
  const Machine place;
  const std::int64_t weights =
      forecast_training(large_solver(), place.options()).value().weight_bytes;
  UpdateSpec delta, gradient;
  gradient.kind = UpdateKind::kGradientOnly;
  for (const UpdateSpec& stage : {delta, gradient}) {
    StoredJob job{.stages = {stage}, .weight_bytes = weights, .workers = 3};
    CHECK(ends_with_store(parts_of(stage, {.shares_memory = false}),
                          store_need(job, large_solver()).value(), 1));
    job.part_copies = job.worker_states = true;
    CHECK(ends_with_store(parts_of(stage, {4, false, true, true}),
                          store_need(job, large_solver()).value(), 4));
    job.part_copies = job.worker_states = false;
    job.shares_memory = true;
    CHECK(ends_with_store(parts_of(stage, {}), store_need(job, large_solver()).value(), 1));
  }
}

TEST_CASE("A worker keeps what its codec leaves out, twice, and what it sends") {
  const Machine place;
  const caffe::SolverParameter solver = large_solver();
  const std::int64_t weights = forecast_training(solver, place.options()).value().weight_bytes;
  const std::int64_t chunks = (weights + kChunkBytes - 1) / static_cast<std::int64_t>(kChunkBytes);
  UpdateSpec stage;
  stage.codec.kind = CodecKind::kInt8;
  const std::int64_t sent =
      chunks * static_cast<std::int64_t>(encoded_bytes_max(stage.codec, kCodecElementsMax));
  const std::string left_out = "exchange " + format_bytes(2 * weights + sent);
  CHECK(parts_of(stage, {.shares_memory = false}).find(left_out) != std::string::npos);
  CHECK(parts_of(stage, {}).find("exchange") == std::string::npos);
  stage.error_feedback = false;
  CHECK(parts_of(stage, {.shares_memory = false}).find("exchange " + format_bytes(sent)) !=
        std::string::npos);

  stage.error_feedback = true;
  JobSpec job = job_of("");
  job.stages = {stage};
  const auto refused = make_memory_guard(1, {false, {1, "the host"}})(job, solver, place.options());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find(left_out) != std::string::npos);
}

TEST_CASE("A net that cannot be built is none whose memory is judged for a cluster") {
  caffe::SolverParameter solver = solver_of("");
  solver.mutable_net_param()->mutable_layer(1)->set_type("Unheard");
  const Machine place;
  CHECK_FALSE(admit_training(solver, place.options(), {}));
  const TrainerParts parts = trainer_parts({.threads = 1});
  CHECK(check_cluster_memory({solver, {}, {UpdateSpec{}}, parts, parts}, {}).value() == 0);
}

// The same machine with a GPU's double.
TrainerParts parts_on_double() {
  TrainerParts parts = trainer_parts({.threads = 1});
  parts.make_backend = []() -> Result<std::unique_ptr<Backend>> {
    return test::make_gpu_double(std::make_shared<test::CallLog>());
  };
  return parts;
}

bool names(const Result<void>& refused, const std::string& limit, std::int64_t bytes) {
  INFO(refused.error().message);
  const std::string& message = refused.error().message;
  CHECK(message.find(limit) != std::string::npos);
  return message.find("predicted " + format_bytes(bytes) + ": ") != std::string::npos;
}

TEST_CASE("What a device of its own memory takes is held against that, the rest against the host") {
  const Machine place(parts_on_double());
  const caffe::SolverParameter solver = solver_of("");
  const MemoryForecast forecast = forecast_training(solver, place.options()).value();
  const std::int64_t device = forecast.bytes_in(MemoryKind::kDevice);
  const std::int64_t host = forecast.bytes_in(MemoryKind::kHost);
  CHECK(device == forecast.weight_bytes + forecast.weight_grad_bytes + forecast.history_bytes +
                      forecast.blob_bytes + forecast.workspace_bytes + forecast.scratch_bytes);
  CHECK(device + host == forecast.total_bytes());
  CHECK(forecast_of("").bytes_in(MemoryKind::kDevice) == 0);

  // So that either holds more or less than what is asked of it.
  const auto admitted = [&](std::int64_t of_host, std::int64_t of_device) -> Result<void> {
    SPEEDO_TRY(admit_training(solver, place.options(),
                              {false, {of_host, "the host"}, {of_device, "the device"}}));
    return {};
  };
  const std::int64_t much = host + device + (64 << 20);
  CHECK(admitted(much, device));
  CHECK(names(admitted(much, device - 1), "the device is", device));
  CHECK_FALSE(admitted(host / 2, much));
  CHECK(admit_training(solver, place.options(), {false, {much, "the host"}}));
}

TEST_CASE("Workers that share a device share its memory, with the master if it is there") {
  const caffe::SolverParameter solver = solver_of("");
  const Machine place(parts_on_double());
  const std::int64_t each =
      forecast_training(solver, place.options()).value().bytes_in(MemoryKind::kDevice);
  const auto admitted = [&](std::int64_t first, std::int64_t second, bool has_master) {
    const ClusterPlan plan{
        solver, {}, {UpdateSpec{}}, parts_on_double(), parts_on_double(), 3,
        {{{first, "the first"}, 2, has_master}, {{second, "the second"}, 1, false}}};
    const auto checked = check_cluster_memory(plan, {});
    return checked ? Result<void>() : Result<void>(checked.error());
  };
  CHECK(admitted(2 * each, each, false));
  CHECK(names(admitted(2 * each - 1, each, false), "the first is", 2 * each));
  CHECK(names(admitted(2 * each, each - 1, false), "the second is", each));
  CHECK(names(admitted(2 * each, each, true), "the first is", 3 * each));
  CHECK(admitted(3 * each, each, true));
}

TEST_CASE("A worker of a device keeps copies of its weights on the host") {
  const caffe::SolverParameter solver = solver_of("");
  const Machine place(parts_on_double());
  const MemoryForecast forecast = forecast_training(solver, place.options()).value();
  const auto admit = make_memory_guard(1, {false, {1, "the host"}});
  const auto refused = admit(job_of(""), solver, place.options());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("exchange " + format_bytes(2 * forecast.weight_bytes)) !=
        std::string::npos);
}

}  // namespace
}  // namespace speedo
