// What people write: command lines, configuration, lists, logs.

#include "fuzz/seeds.hpp"

namespace speedo::fuzz {
namespace {

void add_arguments(std::vector<Seed>& seeds) {
  for (const char* text :
       {"127.0.0.1:6379", "[::1]:6379", "user:p%40ss@host:1", "redis://u:p@host:6379/3",
        "unix://:secret@/run/redis.sock?db=2", "redis-cluster://a:1,b:2", "a:1,b:2",
        "rediss://h:6380", "redis-sentinel://a,b:2/main", "rediss-sentinel://[::1]:3/main",
        "redis-sentinel://a", "redis-sentinel://a/b c", "rediss-cluster://a:1,b", "a:1,a:1",
        "redis-cluster://a:1,redis://b", "a:1,redis-cluster://b", "a:1,redis-sentinel://b/m",
        "redis-cluster://a/1", "http://a", "redis://u%4:p@h", "unix://run", "[::1", "h:70000",
        "redis://h/x"}) {
    seeds.push_back({"arguments", byte_text(0) + text});
  }
  for (const char* text : {"host:2552", "speedo://[::1]:2552",
                           "akka.tcp://SpeeDO@10.0.0.1:2552/user/host"}) {
    seeds.push_back({"arguments", byte_text(1) + text});
  }
  for (const char* text : {"none", "topk:0.5", "threshold:1e-3", "onebit", "topk:200",
                           "threshold:0", "bf16:1", "zip"}) {
    seeds.push_back({"arguments", byte_text(2) + text});
  }
  for (const char* text : {"3", "2:8", "8:2"}) seeds.push_back({"arguments", byte_text(3) + text});
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
  for (const char* text : {"worker1 a\n", "worker0\n", "worker0 a\nworker0 b\n", "# none\n",
                           "worker0 \"a\n"}) {
    seeds.push_back({"lists", byte_text(2) + text});
  }
  for (const std::string& text : {std::string("short\n"), std::string(300, 'a'), std::string(),
                                  std::string(43, 'a') + "\n\n" + std::string(43, 'b')}) {
    seeds.push_back({"lists", byte_text(6) + text});
  }
  for (unsigned i = 0; i < texts.size(); ++i) seeds.push_back({"lists", byte_text(i) + texts[i]});
}

void add_configurations(std::vector<Seed>& seeds) {
  for (unsigned program = 0; program < 4; ++program) {
    seeds.push_back({"config", byte_text(program) +
                                   "max-iter = 100\nredis = \"127.0.0.1:6379\"\n[worker]\n"
                                   "threads = 2\n[run]\nworkers = 3\nsync = true\n"});
  }
  // Values of each kind, right and wrong, and keys that are none.
  for (const char* text :
       {"threads = 1\nlr = 0.5\ndata-cache-limit = \"20GiB\"\n[worker]\n"
        "shard = true\n[master]\nstrategy = \"sync\"\nredis = [\"a:1\", \"b:2\"]\n",
        "[worker]\nshard = \"3\"\n", "data-cache-limit = 1000\n",
        "sync = \"maybe\"\n", "sync = 3\n", "max-iter = \"many\"\n", "max-iter = 0.5\n",
        "threads = 100000\n", "lr = \"x\"\n", "lr = -1.0\n", "data-cache-limit = \"20XB\"\n",
        "data-cache-limit = 0.5\n", "join-timeout = 0.5\n", "[worker]\nshard = false\n",
        "strategy = \"none\"\n", "strategy = 3\n", "redis = [1]\n", "redis = 1.5\n",
        "no-config = true\n", "max-iter = 1\nmaxIter = 2\n", "max-itre = 1\n",
        "[wroker]\nthreads = 1\n", "threads = [",
        "[train]\nmax-iter = 5\n", "[run]\nworkers = true\n", "scale = \"x\"\n",
        "scale = 0.5\n", "join-timeout = \"5m\"\n", "join-timeout = \"2h\"\n",
        "join-timeout = \"5d\"\n", "join-timeout = -1\n", "sync = false\n",
        "require = \"all\"\n", "require = \"none\"\n"}) {
    for (unsigned program = 0; program < 4; ++program) {
      seeds.push_back({"config", byte_text(program) + text});
    }
  }
  for (const char* text :
       {"[[stage]]\nmaxIter = 10\nsync = true\n[[stage]]\ndrop = 3\n", "[stage]\n", "stages = 1\n",
        "stage = [1]\n", "[[stage]]\nsycn = true\n", "[[stage]]\nstrategy = \"x\"\n", "\n",
        "[[stage]]\nstrategy = \"ssp\"\n", "[[stage]]\ndrop = 1\nweedout = 1\n"}) {
    seeds.push_back({"config", byte_text(4) + text});
  }
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
