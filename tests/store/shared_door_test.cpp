// The door to a master's shared memory: who comes in, and what is done with what he brings.

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <speedo/store/memory_store.hpp>

#include "base/descriptor.hpp"
#include "store/shared/memory_door.hpp"
#include "support/catch.hpp"
#include "support/descriptor_limit.hpp"
#include "support/skip.hpp"

namespace speedo::test {
namespace {

constexpr std::uint64_t kTerm = 4;
constexpr uid_t kNobody = 65534;
const RecordShape kShape{.slots = 1, .element_count = 100, .model = {1, 2}};

struct DoorUnderTest {
  DoorUnderTest() {
    auto made = RecordMemory::create({.slots = 3, .element_count = 100, .model = {1, 2}});
    REQUIRE(made);
    weights = *made;
    store->write_in(weights_key(), weights);
    auto opened = open_memory_door(store, kTerm);
    REQUIRE(opened);
    door = std::move(*opened);
  }

  int connect() const {
    const int visitor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(visitor)) return visitor;
    close(visitor);
    return -1;
  }

  bool connect(int visitor) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, door->address().data(), door->address().size());
    const auto length =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + door->address().size());
    return ::connect(visitor, reinterpret_cast<sockaddr*>(&address), length) == 0;
  }

  Result<std::shared_ptr<const SharedRecord>> offer(const std::string& key) const {
    auto home = RecordMemory::create(kShape);
    REQUIRE(home);
    return find_memory_door(door->address())->offer(key, **home);
  }

  std::shared_ptr<RecordMemory> weights;
  std::shared_ptr<SharedStore> store =
      std::make_shared<SharedStore>(make_memory_store("door"));
  std::unique_ptr<MemoryDoor> door;
};

// How often the thread of the door has gone to sleep; read without a further descriptor.
class DoorSleeps {
 public:
  DoorSleeps() {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream stream(task.path() / "comm");
      std::string name;
      if (!std::getline(stream, name) || name != "memory-door") continue;
      status_.emplace(::open((task.path() / "status").c_str(), O_RDONLY | O_CLOEXEC));
    }
    REQUIRE(status_);
  }
  long count() const {
    std::array<char, 4096> text{};
    const ssize_t bytes = ::pread(status_->get(), text.data(), text.size(), 0);
    REQUIRE(bytes > 0);
    const std::string_view all(text.data(), static_cast<std::size_t>(bytes));
    const std::string_view field = "\nvoluntary_ctxt_switches:";
    const std::size_t at = all.find(field);
    REQUIRE(at != std::string_view::npos);
    return std::stol(std::string(all.substr(at + field.size())));
  }

 private:
  std::optional<Descriptor> status_;
};

}  // namespace

TEST_CASE("memory is exchanged at the door", "[shared]") {
  const DoorUnderTest under_test;
  auto home = RecordMemory::create(kShape);
  REQUIRE(home);
  const std::string key = contribution_key(kTerm, 8);
  const auto seen = find_memory_door(under_test.door->address())->offer(key, **home);
  INFO((seen ? "" : seen.error().message));
  REQUIRE(seen);
  CHECK((*seen)->shape().slots == 3);
  under_test.weights->open(2, 31);
  CHECK((*seen)->begun(31));
  REQUIRE(under_test.store->reads_in_place(key));

  (*home)->open(0, 5);
  std::ranges::fill((*home)->slot(0), 1.5F);
  (*home)->show(0, 0);
  RecordInfo info;
  info.model = kShape.model;
  info.element_count = kShape.element_count;
  info.version = 5;
  (*home)->finish(0, info);
  std::vector<float> values(100);
  REQUIRE(get(*under_test.store, key, kShape.model, values));
  CHECK(values == std::vector<float>(100, 1.5F));
}

TEST_CASE("what a worker brings to the door is looked at", "[shared]") {
  const DoorUnderTest under_test;
  for (const std::string& key : {contribution_key(kTerm + 1, 8), weights_key(), std::string()}) {
    const auto refused = under_test.offer(key);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kUnavailable);
    CHECK_FALSE(under_test.store->reads_in_place(key));
  }
  for (const std::string& packet :
       {std::string(), std::string(3, 'x'), std::string(16, 'x'), std::string(100000, 'x')}) {
    const Descriptor visitor(under_test.connect());
    REQUIRE(visitor.get() >= 0);
    REQUIRE(send(visitor.get(), packet.data(), packet.size(), MSG_NOSIGNAL) >= 0);
  }
  CHECK(under_test.offer(contribution_key(kTerm, 8)));  // The door is as good as before.
  under_test.store->write_in(weights_key(), nullptr);
  const auto refused = under_test.offer(contribution_key(kTerm, 9));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("in no shared memory") != std::string::npos);
}

TEST_CASE("a visitor that says nothing does not keep the door open, nor closed", "[shared]") {
  DoorUnderTest under_test;
  const Descriptor silent(under_test.connect());
  REQUIRE(silent.get() >= 0);
  CHECK(under_test.offer(contribution_key(kTerm, 8)));
  const Descriptor another(under_test.connect());
  under_test.door.reset();
}

TEST_CASE("the door rests while there is no descriptor for a visitor", "[shared]") {
  const DoorUnderTest under_test;
  // The thread gives itself its name.
  REQUIRE(under_test.offer(contribution_key(kTerm, 7)));
  const DoorSleeps sleeps;
  const Descriptor visitor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  {
    const DescriptorLimit none;
    const long before = sleeps.count();
    REQUIRE(under_test.connect(visitor.get()));
    const auto has_rested = [&] { return sleeps.count() > before + 3; };
    for (int look = 0; look < 500 && !has_rested(); ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    CHECK(has_rested());
  }
  REQUIRE(under_test.offer(contribution_key(kTerm, 8)));
}

TEST_CASE("another user finds the door closed", "[shared]") {
  if (geteuid() != 0) SPEEDO_SKIP("only root can become another user");
  const DoorUnderTest under_test;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // Whoever is not let in is told nothing: the connection is closed.
    char answer = 0;
    const bool is_other = setuid(kNobody) == 0;
    const int visitor = under_test.connect();
    const std::string packet(16, 'x');
    send(visitor, packet.data(), packet.size(), MSG_NOSIGNAL);
    const bool is_closed = recv(visitor, &answer, 1, 0) <= 0;
    const bool finds_other = !find_memory_door(under_test.door->address())
                                  ->offer(contribution_key(kTerm, 1), *under_test.weights);
    _exit(is_other && visitor >= 0 && is_closed && finds_other ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK_FALSE(under_test.store->reads_in_place(contribution_key(kTerm, 1)));
}

TEST_CASE("a door that is gone, and one that never was", "[shared]") {
  DoorUnderTest under_test;
  const std::string address = under_test.door->address();
  under_test.door.reset();
  auto home = RecordMemory::create(kShape);
  REQUIRE(home);
  for (const std::string& where : {address, std::string("nothing"), std::string(300, 'x')}) {
    const auto refused = find_memory_door(where)->offer(contribution_key(kTerm, 1), **home);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kUnavailable);
  }
}

}  // namespace speedo::test
