// What a process reads that has confined its inputs, and where it writes.

#include "base/input_roots.hpp"

#include <sys/stat.h>

#include <fstream>

#include <speedo/base/file.hpp>

#include "base/output_root.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

void put_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// root/a, root/sub/b, other/c, and secret beside them.
struct Tree {
  Tree() {
    put_text(folder / "root" / "a", "in a");
    put_text(folder / "root" / "sub" / "b", "in b");
    put_text(folder / "other" / "c", "in c");
    put_text(folder / "secret", "hidden");
  }
  fs::path at(const std::string& name) const { return folder.path() / name; }
  std::unique_ptr<InputRoots> confine(InputRoots::Limits limits) const {
    auto roots = InputRoots::confine(limits);
    REQUIRE(roots);
    return std::move(*roots);
  }
  TempDir folder;
};

void check_refused(const fs::path& path, const fs::path& root) {
  const auto read = read_file(path);
  REQUIRE_FALSE(read);
  INFO(read.error().message);
  CHECK(read.error().code == ErrorCode::kData);
  CHECK(read.error().message.find("'" + path.string() + "'") != std::string::npos);
  CHECK(read.error().message.find("--data-root '" + root.string() + "'") != std::string::npos);
  CHECK_FALSE(check_input(path));
}

TEST_CASE("Inputs are read below their roots alone, and everywhere without any") {
  const Tree tree;
  CHECK(read_file(tree.at("secret")).value() == "hidden");
  {
    const auto roots = tree.confine({{tree.at("root"), tree.at("other")}});
    CHECK(are_inputs_confined());
    CHECK(read_file(tree.at("root/a")).value() == "in a");
    CHECK(read_file(tree.at("root/sub/../sub/b")).value() == "in b");
    CHECK(read_file(tree.at("other/c")).value() == "in c");
    CHECK(read_file(tree.at("root/absent")).error().code == ErrorCode::kNotFound);
  }
  CHECK_FALSE(are_inputs_confined());
  CHECK(read_file(tree.at("secret")).value() == "hidden");
}

TEST_CASE("What leads out of the roots is refused, and both paths are named") {
  const Tree tree;
  const fs::path root = tree.at("root");
  fs::create_symlink("../secret", root / "link");
  fs::create_symlink(tree.at("secret"), root / "absolute");
  fs::create_directory_symlink("..", root / "up");
  fs::create_symlink("/proc/self/root" + tree.at("secret").string(), root / "magic");
  put_text(tree.at("root2"), "a longer name");
  const auto roots = tree.confine({{root}});
  for (const char* name : {"secret", "root/../secret", "root/link", "root/absolute",
                           "root/up/secret", "root/magic", "root2"}) {
    INFO(name);
    check_refused(tree.at(name), root);
  }
  check_refused("/etc/passwd", root);
}

TEST_CASE("Links that stay in the roots are followed, from one to another, too") {
  const Tree tree;
  fs::create_symlink(tree.at("root/sub/b"), tree.at("root/inner"));
  fs::create_symlink(tree.at("other/c"), tree.at("root/across"));
  fs::create_directory_symlink(tree.at("root"), tree.at("alias"));
  const auto roots = tree.confine({{tree.at("alias"), tree.at("other")}});
  CHECK(read_file(tree.at("root/inner")).value() == "in b");
  CHECK(read_file(tree.at("root/across")).value() == "in c");
  CHECK(read_file(tree.at("alias/a")).value() == "in a");
}

TEST_CASE("A relative path is looked for in the roots first") {
  const Tree tree;
  const auto roots = tree.confine({{tree.at("other"), tree.at("root")}});
  CHECK(resolve_path("sub/b", "/nowhere") == fs::canonical(tree.at("root/sub/b")));
  CHECK(resolve_path("absent", "/nowhere") == "absent");
  CHECK(also_looked_in().find(fs::canonical(tree.at("other")).string()) != std::string::npos);
}

TEST_CASE("A pipe in the roots is not waited for") {
  const Tree tree;
  REQUIRE(::mkfifo(tree.at("root/pipe").c_str(), 0600) == 0);
  const auto roots = tree.confine({{tree.at("root")}});
  CHECK(read_file(tree.at("root/pipe")).error().code == ErrorCode::kData);
}

TEST_CASE("Roots that are no folders are refused with their name") {
  const Tree tree;
  const auto absent = InputRoots::confine({{tree.at("absent")}});
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == ErrorCode::kNotFound);
  CHECK(absent.error().message.find("absent") != std::string::npos);
  const auto file = InputRoots::confine({{tree.at("root/a")}});
  REQUIRE_FALSE(file);
  CHECK(file.error().code == ErrorCode::kData);
  CHECK_FALSE(are_inputs_confined());
}

TEST_CASE("An address is read from if the worker was told so") {
  const Tree tree;
  CHECK(check_input_address("s3://any/where"));
  const auto roots = tree.confine({{tree.at("root")}, {"s3://bucket/part/"}});
  for (const char* address : {"s3://bucket/part/1", "s3://bucket/part", "s3://bucket/part?list"}) {
    CHECK(check_input_address(address));
  }
  for (const char* address :
       {"s3://bucket/other", "s3://bucket/party", "s3://bucket/part.evil/1",
        "s3://bucket/part/../other", "s3://bucket/part/%2e%2E/other", "s3://bucket/part/..\\other",
        "file:///etc/passwd", "http://169.254.169.254/"}) {
    CAPTURE(address);
    CHECK(check_input_address(address).error().code == ErrorCode::kData);
  }
}

TEST_CASE("Of copies those of the addresses that were asked for are read alone") {
  const Tree tree;
  put_text(tree.at("copies/1/mine"), "copied");
  put_text(tree.at("copies/2/private"), "hidden");
  CHECK(admit_copy(tree.at("absent")));  // Nothing is confined.
  const auto roots = tree.confine({{tree.at("root")}, {"s3://bucket"}, tree.at("copies")});
  check_refused(tree.at("copies/1/mine"), tree.at("root"));
  CHECK(admit_copy(tree.at("copies/absent")).error().code == ErrorCode::kNotFound);
  REQUIRE(admit_copy(tree.at("copies/1/mine")));
  CHECK(read_file(tree.at("copies/1/mine")).value() == "copied");
  CHECK(check_input(tree.at("copies/1/../1/mine")));
  check_refused(tree.at("copies/2/private"), tree.at("root"));
  CHECK(resolve_path("2/private", "/nowhere") == "2/private");
  // What it became since is another file.
  fs::remove(tree.at("copies/1/mine"));
  fs::create_symlink("../2/private", tree.at("copies/1/mine"));
  check_refused(tree.at("copies/1/mine"), tree.at("root"));
}

TEST_CASE("Outputs go below their root alone") {
  const Tree tree;
  fs::create_directory_symlink(tree.at("other"), tree.at("root/out"));
  const auto root = OutputRoot::confine(tree.at("root"));
  REQUIRE(root);
  CHECK(check_output(tree.at("root/snap")));
  CHECK(check_output(tree.at("root/sub/snap")));
  for (const char* name : {"snap", "root/../snap", "root/out/snap", "other/snap"}) {
    INFO(name);
    const auto refused = check_output(tree.at(name));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kCannotWrite);
    CHECK(refused.error().message.find("--output-root '" + tree.at("root").string()) !=
          std::string::npos);
    CHECK_FALSE(check_prefix_writable(tree.at(name).string()));
  }
}

TEST_CASE("An output whose own name is a link goes where the link leads, below the root alone") {
  const Tree tree;
  fs::create_symlink("../secret", tree.at("root/link"));
  fs::create_symlink(tree.at("absent"), tree.at("root/dangling"));
  fs::create_symlink("sub/second", tree.at("root/first"));
  fs::create_symlink("../../other/c", tree.at("root/sub/second"));
  fs::create_symlink("/proc/self/root" + tree.at("secret").string(), tree.at("root/magic"));
  fs::create_symlink("sub/b", tree.at("root/inner"));
  fs::create_symlink("sub/new", tree.at("root/inner_dangling"));
  CHECK(check_output(tree.at("root/link")));
  const auto root = OutputRoot::confine(tree.at("root"));
  REQUIRE(root);
  for (const auto& [name, leads_to] :
       {std::pair("link", "secret"), std::pair("dangling", "absent"), std::pair("first", "other/c"),
        std::pair("magic", "secret")}) {
    INFO(name);
    const fs::path file = tree.at("root") / name;
    const auto refused = check_output(file);
    REQUIRE_FALSE(refused);
    INFO(refused.error().message);
    CHECK(refused.error().code == ErrorCode::kCannotWrite);
    CHECK(refused.error().message.find("'" + file.string() + "'") != std::string::npos);
    CHECK(refused.error().message.find("'" + tree.at(leads_to).string() + "'") !=
          std::string::npos);
  }
  CHECK(check_output(tree.at("root/inner")));
  CHECK(check_output(tree.at("root/inner_dangling")));
  // A prefix is no file's name.
  CHECK(check_prefix_writable(tree.at("root/link").string()));
}

TEST_CASE("An address that is refused is named without its query, and without who asks") {
  const Tree tree;
  const auto roots = tree.confine({.folders = {tree.at("root")}, .addresses = {"http://there/"}});
  const auto refused = check_input_address("http://ann:geheim@here/file?hidden");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("'http://here/file'") == 0);
}

}  // namespace
}  // namespace speedo
