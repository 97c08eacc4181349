// The gate between real programs: who comes in, who does not, and what is to be seen of the token.

#include <sys/resource.h>
#include <sys/stat.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/descriptor.hpp"
#include "support/catch.hpp"
#include "support/free_port.hpp"
#include "support/secret_search.hpp"

#include "cluster.hpp"
#include "recording_proxy.hpp"

namespace speedo {
namespace {

using test::Cluster;
using test::MemoryPart;
using test::Process;
using test::Texts;

const Cluster::Options kOwnProof{.own_proof = true};
const std::string kToken = "Qk9-gate-token-" + std::string(40, 'z');
const std::string kOtherToken = "Wj3-other-token-" + std::string(40, 'y');

std::string token_file(const Cluster& cluster, const std::string& name, const std::string& token,
                       mode_t mode = 0600) {
  const std::string file = cluster.file(name).string();
  std::ofstream(file) << token << "\n";
  ::chmod(file.c_str(), mode);
  return file;
}

// The TCP ports on which a process listens.
std::set<int> listening_ports(pid_t process) {
  std::set<std::string> inodes;
  const std::string folder = "/proc/" + std::to_string(process);
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/fd")) {
    std::error_code code;
    const std::string target = std::filesystem::read_symlink(entry.path(), code).string();
    if (target.starts_with("socket:[")) inodes.insert(target.substr(8, target.size() - 9));
  }
  std::set<int> ports;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream stream(folder + table);
    for (std::string line; std::getline(stream, line);) {
      std::istringstream words(line);
      std::string slot, local, remote, state, word, inode;
      words >> slot >> local >> remote >> state;
      for (int i = 0; i < 6; ++i) words >> inode;
      if (state != "0A" || !inodes.contains(inode)) continue;
      ports.insert(std::stoi(local.substr(local.rfind(':') + 1), nullptr, 16));
    }
  }
  return ports;
}

int port_of(const std::string& address) {
  return std::stoi(address.substr(address.rfind(':') + 1));
}

std::unique_ptr<Descriptor> knock(int port) {
  auto socket = std::make_unique<Descriptor>(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const int done =
      ::connect(socket->get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
  REQUIRE(done == 0);
  return socket;
}

void check_refused(Cluster& cluster, const std::string& master,
                   const std::vector<std::string>& flags, const std::string& words) {
  Process& worker = cluster.start_worker(master, flags);
  CHECK(worker.wait() == 77);
  INFO(worker.errors());
  CHECK(worker.errors().find(words) != std::string::npos);
  CHECK(worker.errors().find("admitted") == std::string::npos);
  cluster.workers().pop_back();
}

}  // namespace

TEST_CASE("workers with the token train, others are told with 77, and nobody sees it") {
  Cluster cluster(1000000, kOwnProof);
  const std::string file = token_file(cluster, "token", kToken);
  Process& master = cluster.start_master({"--workers", "1", "--token-file", file});
  const std::string address = cluster.address();
  test::RecordingProxy proxy(static_cast<std::uint16_t>(port_of(address)));
  const std::string through = "speedo://127.0.0.1:" + std::to_string(proxy.port());
  check_refused(cluster, through,
                {"--token-file", token_file(cluster, "other", kOtherToken)}, "another token");
  check_refused(cluster, through, {}, "--token-file");
  Process& worker = cluster.start_worker(through, {"--token-file", file});
  REQUIRE(cluster.counts_beyond(5));
  CHECK(listening_ports(master.id()) == std::set<int>{port_of(address)});
  CHECK(listening_ports(worker.id()).empty());

  const Texts secrets = {kToken, kOtherToken};
  CHECK(test::in_process_lists(secrets).empty());
  for (const Process* process : {&master, &worker}) {
    CHECK(test::in_memory(process->id(), MemoryPart::kDumped, secrets).empty());
    CHECK_FALSE(test::in_memory(process->id(), MemoryPart::kUndumped, secrets).empty());
  }
  Process status({test::program("speedo"), "status", "--master", address, "--token-file", file},
                 cluster.file("status"));
  CHECK(status.wait() == 0);
  master.signal(SIGTERM);
  CHECK(master.wait() == 0);
  CHECK(worker.wait() == 0);
  CHECK(master.errors().find("another token or authority") != std::string::npos);
  const std::string messages = proxy.recorded();
  CHECK(test::in_text("messages", messages, secrets).empty());
  CHECK(test::in_text("messages", messages, {"HelloMessage", "WelcomeMessage"}).empty());
  CHECK_FALSE(test::in_text("messages", messages, {"SpeeDO"}).empty());
  CHECK(test::in_files(cluster.file("."), secrets, {"token", "other"}).empty());
}

TEST_CASE("a token file that is none is named before anything is tried") {
  Cluster cluster(10, kOwnProof);
  const test::ReservedPort nobody;
  const auto ends = [&](const std::string& file) {
    Process& worker = cluster.start_worker(nobody.address(), {"--token-file", file});
    const auto code = worker.wait();
    INFO(worker.errors());
    CHECK(worker.errors().find(file) != std::string::npos);
    CHECK(worker.errors().find(kToken) == std::string::npos);
    cluster.workers().pop_back();
    return code;
  };
  CHECK(ends(cluster.file("nothing").string()) == 65);
  CHECK(ends(token_file(cluster, "short", "short")) == 64);
  CHECK(ends(token_file(cluster, "open", kToken, 0644)) == 77);
  CHECK(ends(token_file(cluster, "three", kToken + "\n" + kToken + "\n" + kToken)) == 64);
}

TEST_CASE("workers with a certificate train; one that is revoked meanwhile does not come in") {
  Cluster cluster(1000000, kOwnProof);
  const std::string folder = cluster.file("authority").string();
  const auto cert = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "cert");
    test::run_speedo(words, cluster.file("cert"));
  };
  const auto flags = [&](const std::string& name) { return test::certificate_flags(folder, name); };
  cert({"init", folder});
  cert({"issue", folder, "head", "--role", "master"});
  for (const char* name : {"node1", "node2"}) cert({"issue", folder, name});
  Process& master = cluster.start_master(test::joined({"--workers", "1"}, flags("head")));
  const std::string address = cluster.address();
  Process& worker = cluster.start_worker(address, flags("node1"));
  REQUIRE(cluster.counts_beyond(5));
  check_refused(cluster, address, flags("head"), "not for a worker");
  check_refused(cluster, address, {"--token-file", token_file(cluster, "token", kToken)},
                "another proof");
  cert({"revoke", folder, "node2"});
  REQUIRE(master.says("were read again"));
  check_refused(cluster, address, flags("node2"), "certificate");
  master.signal(SIGTERM);
  CHECK(master.wait() == 0);
  CHECK(worker.wait() == 0);
  Process& impostor = cluster.start_master(test::joined({"--workers", "1"}, flags("node1")));
  CHECK(impostor.wait() == 77);
  CHECK(impostor.errors().find("not for a master") != std::string::npos);
}

TEST_CASE("strangers and idle connections leave a master alone, and a worker comes in") {
  Cluster cluster(1000000, kOwnProof);
  const std::string file = token_file(cluster, "token", kToken);
  // Its limit is inherited from here.
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit few = before;
  few.rlim_cur = 256;
  ::setrlimit(RLIMIT_NOFILE, &few);
  Process& master = cluster.start_master({"--workers", "1", "--token-file", file});
  ::setrlimit(RLIMIT_NOFILE, &before);
  const int port = port_of(cluster.address());
  std::vector<std::unique_ptr<Descriptor>> idle;
  const int count = test::is_long() ? 10000 : 500;
  for (int i = 0; i < count; ++i) {
    idle.push_back(knock(port));
    const std::string bytes = i % 3 == 0   ? std::string("S")
                              : i % 3 == 1 ? std::string(100, static_cast<char>(i))
                                           : std::string();
    (void)!::send(idle.back()->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (idle.size() > 900) idle.erase(idle.begin());
  }
  Process& worker = cluster.start_worker(cluster.address(), {"--token-file", file});
  REQUIRE(cluster.counts_beyond(5));
  CHECK(master.running());
  master.signal(SIGTERM);
  CHECK(master.wait() == 0);
  CHECK(worker.wait() == 0);
  CHECK(master.errors().find("displaced") != std::string::npos);
}

}  // namespace speedo
