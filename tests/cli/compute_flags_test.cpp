#include "cli/flags/compute_flags.hpp"

#include <fstream>

#include <speedo/cpu/cpu_options.hpp>

#include "cli/options/config_file.hpp"
#include "cli/options/environment.hpp"
#include "cli/options/option_parser.hpp"
#include "cpu/isa.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

Result<ComputeFlags> read_compute(const std::vector<std::string>& arguments) {
  OptionValues values(Program::kTime);
  SPEEDO_TRY(read_flags(arguments, values));
  return compute_flags(values);
}

std::string compute_refusal(const std::vector<std::string>& arguments) {
  const auto flags = read_compute(arguments);
  REQUIRE_FALSE(flags);
  CHECK(flags.error().code == ErrorCode::kUsage);
  return flags.error().message;
}

TEST_CASE("Threads: as many as the process may use, or fewer") {
  CHECK(settle(read_compute({}).value()).value().threads == default_threads());
  CHECK(settle(read_compute({"--threads", "1"}).value()).value().threads == 1);
  CHECK(read_compute({"-threads=" + std::to_string(default_threads())}));
  const std::string most = "from 1 to " + std::to_string(default_threads());
  for (const std::string& bad :
       {std::string("0"), std::string("-1"), std::string("two"), std::string("1.5"),
        std::to_string(default_threads() + 1), std::string("99999999999999999999")}) {
    INFO(bad);
    const std::string message = compute_refusal({"--threads", bad});
    CHECK(message.find("--threads") != std::string::npos);
    CHECK(message.find(most) != std::string::npos);
    CHECK(message.find("this process may use") != std::string::npos);
  }
}

TEST_CASE("Threads that are fewer than the workers are refused, but only those that were given") {
  ComputeFlags flags;
  CHECK(check_thread_count(flags, 1000));
  flags.threads = 2;
  CHECK(check_thread_count(flags, 2));
  const auto refused = check_thread_count(flags, 3);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUsage);
  CHECK(refused.error().message == "--threads 2 is less than one for each of the 3 workers");
}

TEST_CASE("Instruction sets and precisions have names") {
  CHECK(compute_refusal({"--cpu-isa", "sse"}).find("portable, avx2, avx512") != std::string::npos);
  CHECK(compute_refusal({"--precision", "fp8"}).find("f32, tf32, bf16") != std::string::npos);
  const ComputeFlags flags = read_compute({"--cpu-isa=avx2", "--precision", "bf16"}).value();
  CHECK(to_arguments(flags) == std::vector<std::string>{"--cpu-isa=avx2", "--precision=bf16"});
  CHECK(to_arguments(ComputeFlags{}).empty());
}

TEST_CASE("bf16 is refused by name where the processor does not have it") {
  ComputeFlags flags;
  flags.precision = "bf16";
  const auto settled = settle(flags);
  if (settled) {
    CHECK(settled->precision == CpuPrecision::kBfloat16);
    CHECK(describe(*settled).find("bfloat16") != std::string::npos);
  } else {
    CHECK(settled.error().code == ErrorCode::kUsage);
    CHECK(settled.error().message.find("--precision bf16: ") == 0);
  }
}

TEST_CASE("--gpu and --device name one GPU, or contradict each other") {
  ComputeFlags flags;
  CHECK(gpu_of(flags).value() == std::nullopt);
  flags.device = "gpu";
  CHECK(gpu_of(flags).value() == 0);
  flags.device = "gpu:3";
  CHECK(gpu_of(flags).value() == 3);
  CHECK(to_arguments(flags) == std::vector<std::string>{"--device=gpu:3"});
  flags.gpu = 3;
  CHECK(gpu_of(flags).value() == 3);
  flags.gpu = 2;
  CHECK(gpu_of(flags).error().message.find("contradicts --gpu 2") != std::string::npos);
  flags.device = "gpu";
  CHECK(gpu_of(flags).value() == 2);
  for (const char* bad : {"gpu:", "gpu:-1", "gpu:64", "gpu:x", "cuda", "", "gpu:0,1"}) {
    flags.device = bad;
    INFO(bad);
    CHECK(gpu_of(flags).error().message.find("gpu:0 to gpu:63") != std::string::npos);
  }
}

Result<std::optional<int>> gpu_from(const std::vector<std::string>& arguments,
                                    const Environment& environment, Program program) {
  OptionValues values(program);
  SPEEDO_TRY(read_environment(environment, values));
  SPEEDO_TRY(read_flags(arguments, values));
  return gpu_of(compute_flags(values));
}

TEST_CASE("--device cpu contradicts a --gpu beside it, and goes before one of a lower source") {
  for (const Program program : {Program::kRun, Program::kLaunch, Program::kWorker, Program::kTrain,
                                Program::kTest, Program::kTime}) {
    const auto refused = gpu_from({"--gpu", "0", "--device", "cpu"}, {}, program);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kUsage);
    CHECK(refused.error().message == "--device cpu contradicts --gpu 0: give one");
    CHECK(gpu_from({"--device", "cpu"}, {{"SPEEDO_GPU", "0"}}, program).value() == std::nullopt);
    CHECK(gpu_from({"--device", "gpu:1"}, {{"SPEEDO_GPU", "0"}}, program).value() == 1);
    CHECK(gpu_from({"--gpu", "0"}, {{"SPEEDO_DEVICE", "cpu"}}, program).value() == 0);
    CHECK(gpu_from({"--gpu", "0"}, {{"SPEEDO_DEVICE", "gpu:1"}}, program).value() == 0);
    CHECK(gpu_from({}, {{"SPEEDO_GPU", "2"}}, program).value() == 2);
  }
}

TEST_CASE("A program's own table goes before the top of the file, of --device and --gpu too") {
  const TempDir folder;
  const auto gpu_of_file = [&](const char* text) {
    const std::string file = (folder / "speedo.toml").string();
    std::ofstream(file) << text;
    OptionValues values(Program::kRun);
    REQUIRE(read_config_file(file, values));
    return gpu_of(compute_flags(values));
  };
  CHECK(gpu_of_file("device = \"cpu\"\n[run]\ngpu = 0\n").value() == 0);
  CHECK(gpu_of_file("gpu = 0\n[run]\ndevice = \"cpu\"\n").value() == std::nullopt);
  CHECK_FALSE(gpu_of_file("gpu = 0\ndevice = \"cpu\"\n"));
}

TEST_CASE("A worker says what it computes on, a GPU's precision too") {
  CHECK(device_text({}) == "cpu");
  CHECK(device_text({.precision = CpuPrecision::kBfloat16}) == "cpu");
  ComputeOptions options{.gpu = GpuOptions{.index = 63}};
  CHECK(device_text(options) == "gpu:63");
  options.gpu->precision = GpuPrecision::kTf32;
  CHECK(device_text(options) == "gpu:63, tf32");
}

TEST_CASE("A GPU that is not there is an error that says why") {
  const ComputeFlags flags = read_compute({"--gpu", "63"}).value();
  const auto settled = settle(flags);
  REQUIRE_FALSE(settled);
  CHECK(settled.error().message.find("GPU 63: ") == 0);
  CHECK(compute_refusal({"--gpu", "all"}).find("--gpu") != std::string::npos);
}

TEST_CASE("What computes is described in a few words") {
  ComputeOptions options;
  options.threads = 2;
  CHECK(describe(options) == "2 threads, " + std::string(name(cpu_isa())) + " kernels, float32");
  options.threads = 1;
  CHECK(describe(options).find("1 thread,") == 0);
}

}  // namespace
}  // namespace speedo
