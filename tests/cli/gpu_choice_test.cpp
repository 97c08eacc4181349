#include "cli/flags/gpu_choice.hpp"

#include "cli/options/environment.hpp"
#include "cli/options/option_parser.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

GpusHere gpus(int count) {
  std::vector<GpuDescription> here;
  for (int i = 0; i < count; ++i) here.push_back({.index = i, .name = "a GPU", .major = 9});
  return here;
}

const GpusHere kNoGpu = Error{ErrorCode::kNotFound, "no driver"};

Result<void> have_libraries() { return {}; }
Result<void> lack_libraries() { return Error{ErrorCode::kUnsupported, "no libcudnn"}; }

Error refusal(const std::string& text, const GpusHere& here) {
  const auto parsed = parse_gpus(text, here);
  REQUIRE_FALSE(parsed);
  return parsed.error();
}

caffe::SolverParameter solver_of(int device) {
  caffe::SolverParameter solver;
  solver.set_solver_mode(caffe::SolverParameter::GPU);
  solver.set_device_id(device);
  return solver;
}

TEST_CASE("--gpus names all, or some in any order") {
  CHECK(parse_gpus("all", gpus(3)).value() == std::vector<int>{0, 1, 2});
  CHECK(parse_gpus("0", gpus(1)).value() == std::vector<int>{0});
  CHECK(parse_gpus("2,0", gpus(3)).value() == std::vector<int>{2, 0});
}

TEST_CASE("--gpus that is no list, names one twice or one that is not there is refused by name") {
  for (const char* text : {"", "one", "-1", "0,x", "1.5", "all,0", "99999999999"}) {
    CAPTURE(text);
    CHECK(refusal(text, gpus(3)).code == ErrorCode::kUsage);
  }
  CHECK(refusal("1,0,1", gpus(3)).message.find("GPU 1 twice") != std::string::npos);
  const Error absent = refusal("0,3", gpus(3));
  CHECK(absent.code == ErrorCode::kNotFound);
  CHECK(absent.message.find("no GPU 3") != std::string::npos);
  for (const char* text : {"all", "0"}) CHECK(refusal(text, kNoGpu).message == "no driver");
}

TEST_CASE("--gpus contradicts --gpu and --device of the same source; else the one before counts") {
  const auto named = [](const std::vector<std::string>& arguments,
                        const Environment& environment) {
    OptionValues values(Program::kRun);
    REQUIRE(read_environment(environment, values));
    REQUIRE(read_flags(arguments, values));
    const auto gpus = gpus_named(values);
    return gpus ? *gpus : gpus.error().message;
  };
  CHECK(named({}, {}).empty());
  CHECK(named({"--gpus=0,1"}, {}) == "0,1");
  CHECK(named({"--gpus=0,1"}, {{"SPEEDO_DEVICE", "cpu"}}) == "0,1");
  CHECK(named({"--gpus=0,1"}, {{"SPEEDO_GPU", "0"}}) == "0,1");
  CHECK(named({"--device=cpu"}, {{"SPEEDO_GPUS", "all"}}).empty());
  CHECK(named({"--gpus=0", "--gpu=0"}, {}).find("--gpus contradicts --gpu") == 0);
}

TEST_CASE("a solver's GPU is that of its device_id, if it is there") {
  const auto chosen = [](int device, const GpusHere& here) {
    return gpu_of_solver(solver_of(device), here, have_libraries);
  };
  CHECK(chosen(1, gpus(2)).value() == 1);
  CHECK(chosen(2, gpus(2)).error().code == ErrorCode::kNotFound);
  CHECK(chosen(-1, gpus(2)).error().code == ErrorCode::kNotFound);
  CHECK(chosen(0, kNoGpu).error().message == "no driver");
}

TEST_CASE("a GPU without kernels or libraries for it is not chosen where nobody names it") {
  GpusHere here = gpus(3);
  (*here)[1].major = 6;
  (*here)[1].minor = 1;
  const auto old = gpu_of_solver(solver_of(1), here, have_libraries);
  REQUIRE_FALSE(old);
  CHECK(old.error().code == ErrorCode::kUnsupported);
  CHECK(old.error().message.find("GPU 1 (a GPU) has compute capability 6.1") == 0);
  CHECK(gpu_of_solver(solver_of(0), here, lack_libraries).error().message == "no libcudnn");
  CHECK(usable_gpus(here, have_libraries) == std::vector<int>{0, 2});
  CHECK(usable_gpus(here, lack_libraries).empty());
  CHECK(usable_gpus(kNoGpu, have_libraries).empty());
  CHECK(parse_gpus("1", here).value() == std::vector<int>{1});
}

TEST_CASE("kernels are there for GPUs from capability 7.5 on") {
  const auto serves = [](int major, int minor) {
    GpuDescription gpu;
    gpu.major = major, gpu.minor = minor;
    return check_capability(gpu).has_value();
  };
  CHECK(serves(7, 5));
  CHECK(serves(10, 0));
  CHECK_FALSE(serves(7, 2));
}

TEST_CASE("--device cpu of a program for one process goes before what a solver asks for") {
  for (const Program program : {Program::kTrain, Program::kTime}) {
    OptionValues values(program);
    REQUIRE(read_flags({"--device=cpu"}, values));
    ComputeFlags flags = compute_flags(values);
    CHECK(flags.device_given);
    follow_solver_mode(solver_of(0), "solver.prototxt", flags);
    CHECK(gpu_of(flags).value() == std::nullopt);
  }
}

TEST_CASE("flags go before what a solver asks for") {
  const auto followed = [](const caffe::SolverParameter& solver,
                           const std::vector<std::string>& arguments) {
    OptionValues values(Program::kRun);
    REQUIRE(read_flags(arguments, values));
    ComputeFlags flags = compute_flags(values);
    follow_solver_mode_in_turn(solver, "solver.prototxt", flags);
    return flags;
  };
  CHECK(followed(solver_of(0), {"--device=cpu"}).device == "cpu");
  CHECK(followed(solver_of(0), {"--device=gpu:1"}).device == "gpu:1");
  CHECK(followed(solver_of(0), {"--gpu=1"}).gpu == 1);
  const bool any = check_usable(0, gpu_devices()).has_value();
  const ComputeFlags bare = followed(solver_of(0), {});
  CHECK(bare.device == (any ? "gpu" : "cpu"));
  CHECK_FALSE(bare.gpu);
  CHECK(followed({}, {}).device == "cpu");
}

}  // namespace
}  // namespace speedo
