#include "local/parted_work.hpp"

#include <fstream>
#include <iterator>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

// Work of shell scripts, which find their part in $1 (first) and $2 (count).
class Shop {
 public:
  explicit Shop(std::int64_t pieces, std::int64_t a_part) {
    fs::create_directory(folder());
    work.pieces = pieces;
    work.pieces_a_part = a_part;
    work.folder = folder();
    work.take = [this](const WorkPart& part, const fs::path& made) -> Result<void> {
      std::ifstream stream(made);
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      if (text.empty()) return Error{ErrorCode::kCorrupt, "nothing was made"};
      taken += text;
      firsts.push_back(part.first);
      return {};
    };
  }

  void add(const std::string& name, const std::string& script) {
    work.workers.push_back(
        {name, [script, mark = (temporary_ / "mark").string()](const WorkPart& part) {
           ChildCommand command;
           command.arguments = {
               "sh", "-c", script, mark, std::to_string(part.first), std::to_string(part.count)};
           return command;
         }});
  }
  Result<void> run() const {
    Children children(Guardian::create(folder()).value());
    return do_parted_work(work, children);
  }
  fs::path folder() const { return temporary_ / "work"; }

  PartedWork work;
  std::string taken;
  std::vector<std::int64_t> firsts;

 private:
  const TempDir temporary_;
};

// "0 1 2 ..." of the part's pieces; later parts are done sooner.
constexpr const char* kCount =
    "i=$1; end=$(($1 + $2)); [ $1 -gt 3 ] || sleep 0.1; "
    "while [ $i -lt $end ]; do echo $i; i=$((i + 1)); done";
constexpr const char* kTenPieces = "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n";

TEST_CASE("Parts are taken in order, whichever worker was first") {
  Shop shop(10, 3);
  shop.add("one", kCount);
  shop.add("two", kCount);
  shop.add("three", kCount);
  const auto done = shop.run();
  if (!done) FAIL(done.error().message);
  CHECK(shop.taken == kTenPieces);
  CHECK(shop.firsts == std::vector<std::int64_t>{0, 3, 6, 9});
}

TEST_CASE("A part whose worker dies, or makes rubbish, is given out again") {
  Shop shop(10, 2);
  shop.add("dies", std::string("[ -e $0 ] || { echo half; : >$0; kill -9 $$; }; ") + kCount);
  SECTION("beside a good one") { shop.add("good", kCount); }
  SECTION("alone") {}
  SECTION("beside one that always dies") { shop.add("bad", "kill -9 $$"); }
  SECTION("beside one that makes nothing the first time") {
    shop.add("empty", std::string("[ -e $0.2 ] || { : >$0.2; exit 0; }; ") + kCount);
  }
  const auto done = shop.run();
  if (!done) FAIL(done.error().message);
  CHECK(shop.taken == kTenPieces);
}

TEST_CASE("What no other try can help ends the work, with what the worker said") {
  Shop shop(10, 5);
  shop.add("good", kCount);
  shop.add("refuses", "echo E no such blob >&2; exit 64");
  const auto done = shop.run();
  REQUIRE_FALSE(done);
  CHECK(done.error().code == ErrorCode::kConfig);
  CHECK(done.error().message.find("refuses, batches ") == 0);
  CHECK(done.error().message.find("no such blob") != std::string::npos);
}

TEST_CASE("Work without a worker that lives, or that is stopped, ends") {
  Shop lost(4, 1);
  lost.add("bad", "kill -9 $$");
  const auto done = lost.run();
  REQUIRE_FALSE(done);
  CHECK(done.error().code == ErrorCode::kUnavailable);
  CHECK(done.error().message.find("bad ended with SIGKILL") != std::string::npos);
  Shop endless(4, 1);
  endless.add("slow", "sleep 100");
  endless.work.stopped = [] { return true; };
  CHECK_FALSE(endless.run());
  Shop missing(1, 1);
  missing.work.workers.push_back({"none", [](const WorkPart&) {
                                    ChildCommand command;
                                    command.arguments = {"/no/such/program"};
                                    return command;
                                  }});
  CHECK_FALSE(missing.run());
}

}  // namespace
}  // namespace speedo
