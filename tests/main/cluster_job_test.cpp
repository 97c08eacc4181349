#include "main/cluster_job.hpp"

#include <filesystem>
#include <fstream>

#include <speedo/store/memory_store.hpp>

#include "checkpoint/checkpoint_writer.hpp"
#include "core/prototxt.hpp"
#include "core/weight_file.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

constexpr const char* kNet = R"(name: "a net/1"
  layer { name: "data" type: "Data" top: "data" top: "label"
          data_param { source: "digits" batch_size: 10 } }
)";

// A solver with its net in another folder.
struct Files {
  TempDir folder;
  ClusterFlags flags = cluster_flags(OptionValues(Program::kMaster));

  explicit Files(const std::string& fields) {
    std::filesystem::create_directory(folder / "nets");
    std::ofstream(folder / "nets/net.prototxt") << kNet;
    std::ofstream(folder / "solver.prototxt") << "net: \"nets/net.prototxt\"\n" << fields;
    flags.solver = (folder / "solver.prototxt").string();
  }
  ClusterJob job() const {
    auto made = make_cluster_job(flags);
    INFO((made ? "" : made.error().message));
    REQUIRE(made);
    return std::move(*made);
  }
};

TEST_CASE("On a Redis Cluster a job has sixteen shards or none, and workers are told its nodes") {
  Files files("max_iter: 100 random_seed: 5");
  files.flags.redis = "redis-cluster://one:7000,two";
  CHECK(files.job().options.store.text() == "redis-cluster://one:7000,two:6379");
  files.flags.shards = 16;
  CHECK(files.job().options.merger.in_parts);
  files.flags.shards = 3;
  const auto refused = make_cluster_job(files.flags);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUsage);
  CHECK(refused.error().message.find("give --shards 16") != std::string::npos);
}

TEST_CASE("Workers get the solver with its net inside, and the folder its data may lie in") {
  Files files("max_iter: 100 test_iter: 2 snapshot: 30 random_seed: 5");
  files.flags.schedule.lr = 0.25;
  files.flags.schedule.train = 3;
  files.flags.workers = "2:4";
  files.flags.shard = "offset";
  const ClusterJob job = files.job();
  const auto sent = parse_solver_prototxt(job.options.spec.solver_text, "sent");
  REQUIRE(sent);
  CHECK_FALSE(sent->has_net());
  CHECK(sent->net_param().layer(0).data_param().source() == "digits");
  CHECK(sent->base_lr() == 0.25F);
  CHECK(job.options.spec.base == (files.folder / "nets").string());
  REQUIRE(job.options.session.stages.size() == 1);
  CHECK(job.options.session.stages[0].update.steps_per_run == 3);
  CHECK(job.options.spec.offset_shards);
  CHECK(job.options.spec.expected_workers == 4);
  CHECK(job.options.session.workers_start == 2);
  CHECK(job.options.session.workers_min == 2);
  CHECK(job.options.session.workers_max == 4);
  CHECK(job.options.session.worker_timeout == std::chrono::seconds(10));
  CHECK(job.options.session.stall_timeout == std::chrono::seconds(100));
  CHECK(job.options.session.max_iteration == 100);
  CHECK(job.options.session.snapshot_interval == 30);
  CHECK_FALSE(job.options.session.snapshot_workers);
  CHECK(job.options.job == "a_net_1");
}

TEST_CASE("A job is named as its net is, with a digest for the rest of a long name") {
  CHECK(job_name("") == "speedo");
  CHECK(job_name("a net/1") == "a_net_1");
  CHECK(job_name(std::string(100, 'x')) == std::string(100, 'x'));
  const std::string name = job_name(std::string(5000, 'x'));
  CHECK(name.size() == 100);
  CHECK(name.starts_with(std::string(80, 'x')));
  CHECK(check_job_name(name));
  CHECK(name == job_name(std::string(5000, 'x')));
  CHECK(name != job_name(std::string(5001, 'x')));
  CHECK(name != job_name(std::string(4999, 'x') + " "));
}

TEST_CASE("Tests: the flag's interval, else the solver's, else one at the end") {
  CHECK(Files("max_iter: 100 test_iter: 2").job().options.session.test_interval == 100);
  CHECK(Files("max_iter: 100 test_iter: 2 test_interval: 20").job().options.session.test_interval ==
        20);
  CHECK(Files("max_iter: 100").job().options.session.test_interval == 0);
  Files files("max_iter: 100 test_iter: 2 test_interval: 20");
  files.flags.schedule.test_interval = 0;
  CHECK(files.job().options.session.test_interval == 0);
  files.flags.schedule.test_interval = 7;
  CHECK(files.job().options.session.test_interval == 7);
}

TEST_CASE("A stage may test in a job that does not, and that is enough to keep the best") {
  Files files("max_iter: 100 test_iter: 2");
  files.flags.schedule.test_interval = 0;
  CHECK_FALSE(has_tests(files.job().options.session));
  files.flags.hybrid = "=maxIter 10 =sync =test 2 == =maxIter 10 =sync";
  CHECK(has_tests(files.job().options.session));
  files.flags.snapshot_interval = 4;
  files.flags.rotation.keep_best = true;
  files.flags.rotation.keep = 1;
  CHECK(make_cluster_job(files.flags).error().code == ErrorCode::kUsage);
  files.flags.hybrid = "=maxIter 10 =sync =test 2 == =maxIter 10 =sync =test 4";
  CHECK(has_tests(files.job().options.session));
  files.flags.schedule.test_interval = 2;
  files.flags.rotation.keep_best = false;
  files.flags.hybrid = "=maxIter 10 =sync =test 0";
  CHECK_FALSE(has_tests(files.job().options.session));
}

TEST_CASE("The solver that is sent has an interval of tests, without which its nets are refused") {
  const auto interval = [](const Files& files) {
    return parse_solver_prototxt(files.job().options.spec.solver_text, "sent")->test_interval();
  };
  Files files("max_iter: 100 test_iter: 2");
  CHECK(interval(files) == 100);
  files.flags.schedule.test_interval = 30;
  CHECK(interval(files) == 30);
  files.flags.schedule.test_interval = 0;
  CHECK(interval(files) == 100);
  CHECK(files.job().options.session.test_interval == 0);
  CHECK(interval(Files("max_iter: 100 test_iter: 2 test_interval: 20")) == 20);
  CHECK(interval(Files("max_iter: 100 test_iter: 2 test_interval: -1")) == -1);
  CHECK(interval(Files("max_iter: 100")) == 0);
}

TEST_CASE("Gradient-only and the effective batch reach all parts of the job") {
  Files files("max_iter: 10");
  files.flags.schedule.gradient_only = true;
  files.flags.batch = 40;
  const ClusterJob job = files.job();
  CHECK(job.options.session.stages.at(0).update.kind == UpdateKind::kGradientOnly);
  CHECK(job.solver.iter_size() == 4);
  CHECK(parse_solver_prototxt(job.options.spec.solver_text, "sent")->iter_size() == 4);
}

TEST_CASE("A random seed is settled before the job is sent, the same for all") {
  const ClusterJob job = Files("max_iter: 10").job();
  CHECK(job.solver.random_seed() >= 0);
  CHECK(parse_solver_prototxt(job.options.spec.solver_text, "sent")->random_seed() ==
        job.solver.random_seed());
}

TEST_CASE("A job that goes on from a solver state has the seed of the checkpoint it belongs to") {
  Files files("max_iter: 100");
  caffe::SolverParameter before;
  before.set_snapshot_prefix((files.folder / "snap").string());
  before.set_random_seed(71);
  CheckpointWriter writer(before, "job", {});
  REQUIRE(writer.begin({1, 2}));
  caffe::NetParameter model;
  model.add_layer()->set_name("ip");
  caffe::SolverState state;
  state.set_iter(10);
  REQUIRE(writer.write({10, model, state, "", Digest{1, 2}}));
  files.flags.snapshot = (files.folder / "snap_iter_10.solverstate").string();
  CHECK(files.job().solver.random_seed() == 71);
  CHECK(parse_solver_prototxt(files.job().options.spec.solver_text, "sent")->random_seed() == 71);
  files.flags.seed = 5;
  CHECK(files.job().solver.random_seed() == 5);
  files.flags.seed.reset();
  state.set_iter(11);  // a state of another training under that name
  REQUIRE(write_solverstate(files.flags.snapshot, state));
  CHECK(files.job().solver.random_seed() != 71);
  std::filesystem::remove(files.folder / "snap_iter_10.speedo");  // as Caffe writes states
  CHECK(files.job().solver.random_seed() >= 0);
}

TEST_CASE("The place in the data follows the schedule: an iteration in rounds uses more") {
  Files files("max_iter: 100");
  files.flags.start_iter = 10;
  files.flags.workers = "3";
  CHECK(files.job().options.session.first_step == 10);
  files.flags.schedule.strategy = "averaging";
  CHECK(files.job().options.session.first_step == 150);  // runs of 5 steps
}

TEST_CASE("A solver state's data go on where its checkpoint says, whoever has trained") {
  Files files("max_iter: 100");
  files.flags.workers = "3";
  files.flags.schedule.strategy = "sync";
  caffe::SolverParameter before;
  before.set_snapshot_prefix((files.folder / "snap").string());
  CheckpointWriter writer(before, "job", {});
  REQUIRE(writer.begin({1, 2}));
  caffe::NetParameter model;
  model.add_layer()->set_name("ip");
  caffe::SolverState state;
  state.set_iter(10);
  files.flags.snapshot = (files.folder / "snap_iter_10.solverstate").string();
  const auto first_step = [&](const std::string& session, std::optional<std::uint64_t> step) {
    SnapshotParts parts{10, model, state, session, Digest{1, 2}};
    parts.data_step = step;
    REQUIRE(writer.write(parts));
    return files.job().options.session.first_step;
  };
  CHECK(first_step("", std::nullopt) == 10);  // of one process
  CHECK(first_step("", 25) == 25);            // of one that has gone on with a cluster's
  MasterConfig cluster;
  cluster.first_step = 40;
  CHECK(first_step(MasterSession(cluster).save(), std::nullopt) == 40);
  std::filesystem::remove(files.folder / "snap_iter_10.speedo");
  CHECK(files.job().options.session.first_step == 30);
}

TEST_CASE("eamsgd trains with Nesterov's momentum") {
  Files files("max_iter: 100");
  files.flags.schedule.strategy = "eamsgd";
  CHECK(files.job().solver.type() == "Nesterov");
  CHECK(files.job().solver.momentum() == 0.9F);
  Files own("max_iter: 100 momentum: 0.5 type: \"SGD\"");
  own.flags.schedule.strategy = "eamsgd";
  CHECK(own.job().solver.momentum() == 0.5F);
  Files adam("max_iter: 100 type: \"Adam\"");
  adam.flags.schedule.strategy = "eamsgd";
  const auto refused = make_cluster_job(adam.flags);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("Adam") != std::string::npos);
}

TEST_CASE("What a stage gives the solver has to suit its type") {
  Files files("max_iter: 100 type: \"RMSProp\" base_lr: 0.1 lr_policy: \"fixed\"");
  CHECK(make_cluster_job(files.flags));
  files.flags.hybrid = "=maxIter 10 =sync == =maxIter 90 =momentum 0.5";
  const auto refused = make_cluster_job(files.flags);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kConfig);
  CHECK(refused.error().message.find("RMSProp") != std::string::npos);
  CHECK(refused.error().message.find("momentum") != std::string::npos);
}

TEST_CASE("Checkpoint files: the flag's interval, else the solver's; the best needs tests") {
  Files files("max_iter: 100 test_iter: 2 test_interval: 20 snapshot: 30");
  files.flags.snapshot_interval = 50;
  CHECK(files.job().options.session.snapshot_interval == 50);
  files.flags.rotation.keep_best = true;
  files.flags.rotation.keep = 2;
  CHECK(make_cluster_job(files.flags).error().message.find("multiple") != std::string::npos);
  files.flags.snapshot_interval = 40;
  CHECK(files.job().options.session.snapshot_interval == 40);
}

TEST_CASE("A deterministic job needs a seed") {
  Files files("max_iter: 100");
  files.flags.schedule.sync = files.flags.schedule.gradient_only = true;
  files.flags.deterministic = true;
  CHECK(make_cluster_job(files.flags).error().message.find("--seed") != std::string::npos);
  files.flags.seed = 4;
  CHECK(files.job().solver.random_seed() == 4);
}

TEST_CASE("Jobs that cannot run are refused") {
  CHECK(make_cluster_job(Files("base_lr: 1").flags).error().message.find("max_iter") !=
        std::string::npos);
  Files files("max_iter: 10");
  files.flags.start_iter = 10;
  CHECK(make_cluster_job(files.flags).error().code == ErrorCode::kUsage);
  files.flags.start_iter = 9;
  CHECK(files.job().options.session.start_iteration == 9);
  std::filesystem::remove(files.folder / "nets/net.prototxt");
  const auto missing = make_cluster_job(files.flags);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message.find("net.prototxt") != std::string::npos);
}

TEST_CASE("An iteration given beside the store's weights is what they are counted from") {
  Files files("max_iter: 100 random_seed: 5");
  files.flags.resume = kResumeFromStore;
  const auto renumbers = [&] {
    ClusterJob job = files.job();
    REQUIRE(set_resume(files.flags, {}, {}, job));
    CHECK(job.options.resume == MasterOptions::Resume::kStore);
    return job.options.renumber;
  };
  CHECK_FALSE(renumbers());
  files.flags.start_iter = 7;
  CHECK(renumbers());
}

}  // namespace
}  // namespace speedo
