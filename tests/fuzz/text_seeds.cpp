// What people write: command lines, configuration, lists, logs.

#include "fuzz/seeds.hpp"

namespace speedo::fuzz {
namespace {

void add_arguments(std::vector<Seed>& seeds) {
  for (const char* text :
       {"127.0.0.1:6379", "[::1]:6379", "user:p%40ss@host:1", "redis://u:p@host:6379/3",
        "unix://:secret@/run/redis.sock?db=2", "redis-cluster://a:1,b:2", "a:1,b:2",
        "rediss://h:6380"}) {
    seeds.push_back({"arguments", byte_text(0) + text});
  }
  for (const char* text : {"host:2552", "speedo://[::1]:2552",
                           "akka.tcp://SpeeDO@10.0.0.1:2552/user/host"}) {
    seeds.push_back({"arguments", byte_text(1) + text});
  }
  for (const char* text : {"none", "topk:0.5", "threshold:1e-3", "onebit"}) {
    seeds.push_back({"arguments", byte_text(2) + text});
  }
  for (const char* text : {"3", "2:8"}) seeds.push_back({"arguments", byte_text(3) + text});
  seeds.push_back({"config", byte_text(5) + "=maxIter 100 =sync == =drop 3 =staleness \"2\""});
}

void add_lists(std::vector<Seed>& seeds) {
  const std::vector<std::string> texts = {
      "# groups\na b\nc\n",
      "user@node1:22 workers=2 threads=4 folder=\"/a b\" program=/usr/bin/speedo-worker\nnode2\n",
      "worker0 shards/a # comment\n\"*\" \"b c\"\n",
      "a b.png 3\nc.jpg 1\nd.png\n",
      "# 0\na.jpg\n3\n10\n20\n2\n1 0.9 0 0 5 5\n2 0.1 1 1 3 3\n# 1\nb.jpg\n3\n9\n9\n0\n",
      "n01 cat\nn02 dog, big\n",
      std::string(43, 'a') + "\n" + std::string(44, 'b') + "\n"};
  for (unsigned i = 0; i < texts.size(); ++i) seeds.push_back({"lists", byte_text(i) + texts[i]});
}

void add_configurations(std::vector<Seed>& seeds) {
  for (unsigned program = 0; program < 4; ++program) {
    seeds.push_back({"config", byte_text(program) +
                                   "max-iter = 100\nredis = \"127.0.0.1:6379\"\n[worker]\n"
                                   "threads = 2\n[run]\nworkers = 3\nsync = true\n"});
  }
  seeds.push_back({"config", byte_text(4) + "[[stage]]\nmaxIter = 10\nsync = true\n[[stage]]\n"
                                            "drop = 3\n"});
}

}  // namespace

std::vector<Seed> text_seeds() {
  std::vector<Seed> seeds;
  add_arguments(seeds);
  add_lists(seeds);
  add_configurations(seeds);
  const std::string log =
      "I1121 03:30:21.215664 32584 caffe.cpp:197] Use CPU.\n"
      "I1121 03:30:22.1 1 solver.cpp:281] Solving mlp\n"
      "I1121 03:30:23.2 1 solver.cpp:341] Iteration 0, Testing net (#0)\n"
      "I1121 03:30:23.3 1 solver.cpp:409]     Test net output #0: accuracy = 0.5\n"
      "I1121 03:30:24.4 1 solver.cpp:239] Iteration 0 (3 iter/s, 1s/5 iters), loss = 1.5\n"
      "I1121 03:30:24.5 1 solver.cpp:258]     Train net output #0: loss = 1.5 (* 1 = 1.5 loss)\n"
      "I1121 03:30:24.6 1 sgd_solver.cpp:112] Iteration 0, lr = 0.1\n";
  seeds.push_back({"log", log});
  std::string years = log;
  for (std::size_t at = 0; (at = years.find("I1121", at)) != std::string::npos; at += 9) {
    years.insert(at + 1, "2026");
  }
  seeds.push_back({"log", years});
  return seeds;
}

}  // namespace speedo::fuzz
