#include "local/core_shares.hpp"

#include <algorithm>
#include <numeric>

#include "support/catch.hpp"

namespace speedo {
namespace {

using Threads = std::vector<int>;
using Processors = std::vector<std::vector<int>>;

TEST_CASE("Threads are divided among the workers, each gets one at least") {
  CHECK(share_threads(2, 1, false) == Threads{2});
  CHECK(share_threads(2, 2, false) == Threads{1, 1});
  CHECK(share_threads(8, 3, false) == Threads{3, 3, 2});
  CHECK(share_threads(8, 3, true) == Threads{2, 2, 2});
  CHECK(share_threads(2, 4, false) == Threads{1, 1, 1, 1});
  CHECK(share_threads(2, 4, true) == Threads{1, 1, 1, 1});
  const Threads many = share_threads(13, 5, false);
  CHECK(std::accumulate(many.begin(), many.end(), 0) == 13);
}

TEST_CASE("The master of a local cluster is counted where threads are left over") {
  for (const int threads : {1, 2, 3, 4, 8, 13, 16}) {
    for (const std::uint64_t workers : {1U, 2U, 3U, 5U, 8U}) {
      CAPTURE(threads, workers);
      const Threads shares = share_with_master(threads, workers);
      REQUIRE(shares.size() == workers);
      const int all = std::accumulate(shares.begin(), shares.end(), 0);
      const auto count = static_cast<int>(workers);
      const int besides = threads % count == 0 || threads < count ? 1 : 0;
      CHECK(all + kMasterThreads == std::max(threads, count) + besides);
    }
  }
  CHECK(share_with_master(4, 2) == Threads{2, 2});
  CHECK(share_with_master(5, 2) == Threads{2, 2});
  CHECK(share_with_master(8, 3) == Threads{3, 2, 2});
}

TEST_CASE("No processor is given to two workers, and none that is not there") {
  const auto shares = share_processors({0, 2, 3, 7}, {2, 1});
  REQUIRE(shares);
  CHECK(*shares == Processors{{0, 2}, {3}});
  CHECK(share_processors({5}, {1}).value() == Processors{{5}});
  const auto refused = share_processors({0, 1}, {1, 1, 1});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUsage);
  CHECK(refused.error().message.find("3 workers") != std::string::npos);
  CHECK(refused.error().message.find("2 processors") != std::string::npos);
}

TEST_CASE("This process may run somewhere") {
  const std::vector<int> processors = allowed_processors();
  REQUIRE_FALSE(processors.empty());
  CHECK(std::is_sorted(processors.begin(), processors.end()));
}

}  // namespace
}  // namespace speedo
