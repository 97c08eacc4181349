#include "cli/flags/gpu_choice.hpp"

#include "cli/options/option_parser.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

GpusHere gpus(int count) {
  std::vector<GpuDescription> here;
  for (int i = 0; i < count; ++i) here.push_back({.index = i, .name = "a GPU"});
  return here;
}

const GpusHere kNoGpu = Error{ErrorCode::kNotFound, "no driver"};

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

TEST_CASE("a solver's GPU is that of its device_id, if it is there") {
  CHECK(gpu_of_solver(solver_of(1), gpus(2)).value() == 1);
  CHECK(gpu_of_solver(solver_of(2), gpus(2)).error().code == ErrorCode::kNotFound);
  CHECK(gpu_of_solver(solver_of(-1), gpus(2)).error().code == ErrorCode::kNotFound);
  CHECK(gpu_of_solver(solver_of(0), kNoGpu).error().message == "no driver");
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
  const bool any = gpu_devices().has_value();
  const ComputeFlags bare = followed(solver_of(0), {});
  CHECK(bare.device == (any ? "gpu" : "cpu"));
  CHECK_FALSE(bare.gpu);
  CHECK(followed({}, {}).device == "cpu");
}

}  // namespace
}  // namespace speedo
