#include "cli/hosts_file.hpp"

#include <fstream>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

Result<std::vector<Host>> read(const std::string& text) {
  const TempDir folder;
  const std::string path = (folder / "hosts").string();
  std::ofstream(path) << text;
  return read_hosts_file(path);
}

std::string error_of(const std::string& text) {
  const auto hosts = read(text);
  REQUIRE_FALSE(hosts);
  CHECK(hosts.error().code == ErrorCode::kConfig);
  return hosts.error().message;
}

TEST_CASE("Each line of a hosts file is a host with its settings") {
  const auto hosts = read(
      "# machines of the second floor\n"
      "node1\n"
      "\n"
      "ann@node2:2222 slots=4 threads=8   # the fast one\r\n"
      "[fe80::1]:22 workers=2 directory=\"/data/with blanks # and more\" program=/opt/w\n"
      "::1");
  REQUIRE(hosts);
  CHECK(*hosts == std::vector<Host>{
                      {.name = "node1"},
                      {.name = "ann@node2", .port = 2222, .workers = 4, .threads = 8},
                      {.name = "fe80::1",
                       .port = 22,
                       .workers = 2,
                       .folder = "/data/with blanks # and more",
                       .program = "/opt/w"},
                      {.name = "::1"}});
}

TEST_CASE("A hosts file may begin with the mark of a Windows editor") {
  const auto hosts = read("\xEF\xBB\xBFnode1\nnode2\n");
  REQUIRE(hosts);
  CHECK(*hosts == std::vector<Host>{{.name = "node1"}, {.name = "node2"}});
}

TEST_CASE("What is wrong in a hosts file is named with its line, and what would be right") {
  CHECK(error_of("a\nb slot=2\n").find(":2: unknown setting 'slot', did you mean slots?") !=
        std::string::npos);
  CHECK(error_of("a workers=0").find("from 1 to 1024, not '0'") != std::string::npos);
  CHECK(error_of("a threads=two").find("not 'two'") != std::string::npos);
  CHECK(error_of("a workers=3 threads=2").find("fewer threads than workers") !=
        std::string::npos);
  CHECK(error_of("a:99999").find("'99999' is no port") != std::string::npos);
  CHECK(error_of("a workers=1 slots=2").find("workers is given twice") != std::string::npos);
  CHECK(error_of("a b").find("one host a line") != std::string::npos);
  CHECK(error_of("a folder=\"x").find("no end") != std::string::npos);
  CHECK(error_of("a folder=").find("has no value") != std::string::npos);
  CHECK(error_of("a\nb\na workers=2").find(":3: host 'a' is in line 1 already") !=
        std::string::npos);
  CHECK(error_of("# nobody\n").find("holds no host") != std::string::npos);
  // Words that ssh would take for its options, or a shell for its own.
  for (const char* word : {"-oProxyCommand=x", "a;b", "$(x)", "@b", "a@", "workers=2", "../a",
                           "a/b"}) {
    INFO(word);
    CHECK(error_of(word).find(":1: ") != std::string::npos);
  }
}

TEST_CASE("A hosts file that is not there is named") {
  const auto hosts = read_hosts_file("/no/such/hosts");
  REQUIRE_FALSE(hosts);
  CHECK(hosts.error().message.find("--hosts /no/such/hosts") != std::string::npos);
}

}  // namespace
}  // namespace speedo
