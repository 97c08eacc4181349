// What comes from other processes: Redis, CAF's nodes, gates.
#include <vector>

#include "actors/compat.hpp"
#include "fuzz/seeds.hpp"
#include "gate/basp_bytes.hpp"
#include "gate/preamble.hpp"

namespace speedo::fuzz {
namespace {

void add_replies(std::vector<Seed>& seeds) {
  for (const char* text :
       {"+OK\r\n", ":1000\r\n", "$-1\r\n", "$5\r\nhello\r\n+OK\r\n$0\r\n\r\n",
        "-MOVED 3999 127.0.0.1:6381\r\n", "-ASK 3999 :6381\r\n", "-TRYAGAIN later\r\n",
        "-CLUSTERDOWN Hash slot not served\r\n", "-WRONGPASS invalid username-password pair\r\n",
        "-NOPERM this user has no permissions to run the 'config|get' command\r\n",
        "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n",
        "-ERR Error running script (call to f_0): @user_script:1: -OOM command not allowed\r\n",
        "-ERR The user executing the script can't run this command or subcommand script\r\n",
        "-MOVED 70000 h:1\r\n", "-MOVED 3999 nowhere\r\n", "?\x01\r\n", "\r\n", "$x\r\n",
        "-OOM command not allowed\r\n", "-READONLY You can't write\r\n", "-LOADING dataset\r\n",
        "$45\r\nhigher 00000000000000000007 2500 host/123/456\r\n",
        "$38\r\nheld 00000000000000000007 2500 a holder\r\n",
        "$40\r\nredis_version:7.0.15\r\nmaxmemory_policy:x\r\n\r\n"}) {
    for (const unsigned whole : {0, 1}) {
      seeds.push_back({"resp", byte_text(5) + byte_text(whole) + byte_text(13) + text});
    }
  }
  for (const char* slots :
       {"*1\r\n*3\r\n:0\r\n:99\r\n*2\r\n$1\r\nh\r\n:7000\r\n",
        "*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$1\r\n?\r\n:7000\r\n$2\r\nid\r\n*2\r\n"
        "$2\r\nip\r\n$3\r\n::1\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*3\r\n$1\r\n?\r\n:7000\r\n$2\r\nid\r\n", "*1\r\n:0\r\n"}) {
    seeds.push_back({"resp", byte_text(5) + byte_text(2) + byte_text(13) + slots});
  }
}

template <WireMessage Message>
std::string written(Message message) {
  caf::execution_unit* const no_context = nullptr;
  std::vector<char> bytes;
  caf::binary_serializer sink{no_context, bytes};
  SPEEDO_ASSERT(!sink(message));
  return {bytes.begin(), bytes.end()};
}

void add_messages(std::vector<Seed>& seeds) {
  const auto add = [&](unsigned which, const std::string& bytes) {
    seeds.push_back({"messages", byte_text(which) + bytes});
  };
  add(0, written(HelloMessage{.name = "host/1/2", .device = "cpu"}));
  add(1, written(WelcomeMessage{.worker = 1, .store = "127.0.0.1:6379", .job = "job"}));
  add(2, written(RefusedMessage{.code = 3, .reason = "why"}));
  add(3, written(ReadyMessage{.worker = 1}));
  add(4, written(TrainMessage{.run = 1, .iteration = 2}));
  add(5, written(TrainedMessage{.worker = 1, .run = 2}));
  add(6, written(LeaveMessage{.worker = 1, .reason = "so"}));
  add(7, written(StopMessage{.reason = "done"}));
  add(8, written(BeatMessage{.worker = 1}));
  add(9, written(StatusRequestMessage{}));
  JobStatusMessage job;
  job.job = "job";
  job.rows = 1;
  WorkerStatusMessage worker;
  worker.name = "host/1/2";
  add(10, piece_text(written(job)) + written(worker));
  job.flags = 15;
  job.merges = 1;
  add(10, piece_text(written(job)) + written(worker));
  for (std::uint32_t kind = 0; kind < 8; ++kind) {
    PartOrderMessage order;
    order.kind = kind;
    order.numbers.assign(12, 1);
    order.is_last = 1;
    add(11, piece_text(written(order)));
    PartAnswerMessage answer;
    answer.kind = kind;
    answer.numbers = {1, 2, 3, 4, 5, 6};
    answer.slot = 2;
    answer.is_last = 1;
    add(12, piece_text(written(answer)));
  }
}

std::string said_by_caf() {
  return test::monitor_note('w', 'm') + test::hello() + test::heartbeat() +
         test::direct_message("@<>+speedo::BeatMessage") + test::down_note('w', 'm', "\x03@<>");
}

void add_gate(std::vector<Seed>& seeds) {
  for (const unsigned flags : {0, 1}) {
    const std::string greeting = test::server_handshake('m', test::kCafApplication);
    seeds.push_back({"basp", byte_text(flags) + byte_text(7) +
                                 (flags == 1 ? greeting : test::client_handshake('w')) +
                                 said_by_caf()});
  }
  seeds.push_back({"basp", byte_text(2) + byte_text(7) + said_by_caf()});
  const Greeting open{.mode = GateMode::kOpen, .protocol = 8, .nonce = std::string(16, 'n')};
  const Greeting token{.mode = GateMode::kToken, .protocol = 8, .nonce = std::string(16, 'n')};
  seeds.push_back({"gate", byte_text(0) + byte_text(40) + encode(open) + byte_text(kAdmittedByte) +
                               test::server_handshake('m', test::kCafApplication)});
  seeds.push_back({"gate", byte_text(2) + byte_text(40) + encode(token) + byte_text(5)});
  const PreambleKey key = preamble_key(std::string(43, 'a'));
  const Preamble preamble{.protocol = 8, .nonce = std::string(16, 'm'), .key_id = key.id};
  const std::string bytes = encode(preamble, encode(open), key);
  for (const unsigned flags : {1, 3}) {
    seeds.push_back({"gate", byte_text(flags) + byte_text(63) + bytes +
                                 test::client_handshake('w') + said_by_caf()});
  }
  // A record of a TLS handshake, for a listener that has had a preamble.
  seeds.push_back({"gate", byte_text(7) + byte_text(200) +
                               std::string("\x16\x03\x01\0\x2d\x01\0\0\x29\x03\x03", 11) +
                               std::string(32, 'r') + std::string("\0\0\x02\x13\x02\x01\0", 7)});
}

}  // namespace

std::vector<Seed> network_seeds() {
  std::vector<Seed> seeds;
  add_replies(seeds);
  add_messages(seeds);
  add_gate(seeds);
  return seeds;
}

}  // namespace speedo::fuzz
