#include "cli/flags/speedo_flags.hpp"

#include "support/catch.hpp"

namespace speedo {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("A number behind --sleepAfterFinish is its value, in any spelling") {
  CHECK(fold_speedo({"--sleepAfterFinish", "15"}) == Words{"--sleepAfterFinish=15"});
  CHECK(fold_speedo({"--sleepAfterFinish", "soon"}) == Words{"--sleepAfterFinish=soon"});
  CHECK(fold_speedo({"-sleep_after_finish", "0", "--json"}) ==
        Words{"-sleep_after_finish=0", "--json"});
  for (const Words& same : {Words{"--sleep-after-finish"}, Words{"--sleep-after-finish=7", "8"},
                            Words{"--sleep-after-finish", "--json"},
                            Words{"--", "--sleep-after-finish", "15"}}) {
    CHECK(fold_speedo(same) == same);
  }
  CHECK(fold_speedo({"--hybrid", "=sync", "==", "=drop", "3", "--sleepAfterFinish", "15"}) ==
        Words{"--hybrid==sync == =drop 3", "--sleepAfterFinish=15"});
}

TEST_CASE("A time to stay is whole seconds, or until a signal") {
  using std::chrono::seconds;
  CHECK(sleep_time("15").value() == seconds(15));
  CHECK(sleep_time("0").value() == seconds(0));
  CHECK(sleep_time(kUntilSignal).value() == std::nullopt);
  for (const char* bad : {"-1", "1.5", "x", "", "15s", "99999999999999999999"}) {
    const auto refused = sleep_time(bad);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kUsage);
    CHECK(refused.error().message.find("--sleep-after-finish=" + std::string(bad) + ":") == 0);
  }
}

TEST_CASE("Flags of SpeeDO that have no meaning here are refused with what takes their place") {
  const auto refused = [](const Words& arguments, SpeedoProgram program) {
    const auto result = refuse_speedo_flags(arguments, program);
    return result ? std::string() : result.error().message;
  };
  for (const SpeedoProgram program : {SpeedoProgram::kMaster, SpeedoProgram::kWorker}) {
    CHECK(refused({"--start", "0.5"}, program).find("--shard offset") != std::string::npos);
    CHECK(refused({"--suffix=worker0"}, program).find("--job") != std::string::npos);
    CHECK(refused({"-baseDir", "x"}, program).find("--baseDir: ") == 0);
    CHECK(refused({"--double_precision"}, program).find("float32") != std::string::npos);
    CHECK(refused({"--solver", "s", "--start-iter", "3", "--", "--start"}, program).empty());
  }
  CHECK(refused({"--host", "h", "--master", "m:1"}, SpeedoProgram::kMaster)
            .find("speedo-worker --master") != std::string::npos);
  CHECK(refused({"--master", "m:1"}, SpeedoProgram::kWorker).empty());
}

}  // namespace
}  // namespace speedo
