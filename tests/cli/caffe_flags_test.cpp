#include "cli/flags/caffe_flags.hpp"

#include <speedo/base/file.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

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

TEST_CASE("a file's flags stand in the place of -flagfile") {
  const TempDir folder;
  const std::string first = (folder / "first").string(), second = (folder / "second").string();
  REQUIRE(
      write_file_atomically(first, "# of all\r\n-gpu=0\n\n  --stage=a b \n-flagfile=" + second));
  REQUIRE(write_file_atomically(second, "-shuffle\n"));
  const auto all = with_flag_files({"train", "-flagfile", first, "-gpu", "1", "--"});
  REQUIRE(all);
  CHECK(*all == Arguments{"train", "-gpu=0", "--stage=a b", "-shuffle", "-gpu", "1", "--"});
  CHECK(*with_flag_files({"--flagfile=" + second + "," + second, "x"}) ==
        Arguments{"-shuffle", "-shuffle", "x"});
  const auto refused = [](const Arguments& arguments) {
    const auto result = with_flag_files(arguments);
    return result ? std::string() : result.error().message;
  };
  CHECK(refused({"train", "-flagfile"}) == "-flagfile needs the name of a file");
  CHECK(refused({"-flagfile=" + folder.path().string() + "/none"}).find("none") !=
        std::string::npos);
  REQUIRE(write_file_atomically(second, "-gpu=0\ntrain\n"));
  CHECK(refused({"-flagfile=" + first}).find("second' line 2: 'train' is no flag") !=
        std::string::npos);
  REQUIRE(write_file_atomically(second, "-flagfile=" + second));
  CHECK(refused({"-flagfile=" + first}).find("more than 8 files") != std::string::npos);
}

}  // namespace
}  // namespace speedo
