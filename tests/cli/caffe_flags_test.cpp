#include "cli/flags/caffe_flags.hpp"

#include "support/catch.hpp"

namespace speedo {
namespace {

using Arguments = std::vector<std::string>;

TEST_CASE("glog's flags are left out, with their values; switches can be turned off") {
  CHECK(from_gflags(
            {"-logtostderr=1", "--alsologtostderr", "-log_dir", "/tmp", "-v=2", "-minloglevel", "1",
             "--nologtostderr", "-noshuffle", "--nogray", "a", "-backend", "lmdb"},
            Program::kConvertImageset) ==
        Arguments{"--shuffle=false", "--gray=false", "a", "-backend", "lmdb"});
}

TEST_CASE("what only looks like one of them stays") {
  const Arguments same = {"-nothing", "--no-config", "-number", "5", "--", "-logtostderr"};
  CHECK(from_gflags(same, Program::kConvertImageset) == same);
  CHECK_FALSE(glog_flag("logtostderr").is_one);
  CHECK_FALSE(glog_flag("-logs").is_one);
  CHECK(glog_flag("--log-dir").takes_next);
  CHECK_FALSE(glog_flag("--log_dir=x").takes_next);
}

}  // namespace
}  // namespace speedo
