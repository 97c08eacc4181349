#include "tools/log_tables.hpp"

#include "support/catch.hpp"

namespace speedo {
namespace {

constexpr const char* kLog =
    "I1231 23:59:59.000000 1 solver.cpp:45] Initializing solver\n"
    "I1231 23:59:59.500000 1 solver.cpp:330] Solving net\n"
    "I1231 23:59:59.600000 1 solver.cpp:347] Iteration 0, Testing net (#0)\n"
    "I1231 23:59:59.700000 1 solver.cpp:414]     Test net output #0: accuracy = 0.25\n"
    "I1231 23:59:59.700000 1 solver.cpp:414]     Test net output #1: loss = 2.5 (* 1 = 2.5 loss)\n"
    "a line without a date\n"
    "I0101 00:00:00.000500 1 solver.cpp:239] Iteration 0 (0 iter/s, 0s/5 iters), loss = 2.4\n"
    "I0101 00:00:00.000500 1 solver.cpp:258]     Train net output #0: loss = 2.4 (* 1 = 2.4 loss)\n"
    "I0101 00:00:00.000500 1 sgd_solver.cpp:112] Iteration 0, lr = 0.01\n"
    "I0101 00:00:01.500000 1 solver.cpp:239] Iteration 5 (5 iter/s, 1s/5 iters), loss = 1e-05\n"
    "I0101 00:00:01.500000 1 solver.cpp:258]     Train net output #0: loss = 1e-05 (* 1 = 1 loss)\n"
    "I0101 00:00:01.500000 1 sgd_solver.cpp:112] Iteration 5, lr = 0.001\n"
    "I0101 00:00:02.500000 1 solver.cpp:239] Iteration 10 (5 iter/s, 1s/5 iters), loss = 0.5\n"
    "I0101 00:00:02.500000 1 solver.cpp:258]     Train net output #0: loss = 0.5 (* 1 = 0.5 "
    "loss)\n";

TEST_CASE("a log becomes two tables, over the end of a year too") {
  const auto tables = read_log_tables(kLog, "log", 2015);
  REQUIRE(tables);
  // The first row is complete only when the next iteration's begins, as in Caffe's script.
  CHECK(to_csv(tables->train, ',') ==
        "NumIters,Seconds,LearningRate,loss\r\n"
        "0.0,0.5005,0.01,2.4\r\n"
        "5.0,2.0,0.01,1e-05\r\n"
        "10.0,3.0,0.001,0.5\r\n");
  // The only row, which Caffe's script loses.
  CHECK(to_csv(tables->test, ';') ==
        "NumIters;Seconds;LearningRate;accuracy;loss\r\n"
        "0.0;0.2;nan;0.25;2.5\r\n");
}

TEST_CASE("a last row that lacks outputs is left out, and a table without rows stays empty") {
  const auto tables = read_log_tables(
      "I1121 03:30:20.000000 1 solver.cpp:330] Solving net\n"
      "I1121 03:30:20.000000 1 solver.cpp:347] Iteration 0, Testing net (#0)\n"
      "I1121 03:30:20.000000 1 solver.cpp:414]     Test net output #0: accuracy = 0.25\n"
      "I1121 03:30:20.000000 1 solver.cpp:414]     Test net output #1: loss = 2.5\n"
      "I1121 03:30:21.000000 1 solver.cpp:347] Iteration 5, Testing net (#0)\n"
      "I1121 03:30:21.000000 1 solver.cpp:414]     Test net output #0: accuracy = 0.5\n"
      "I1121 03:30:21.000000 1 solver.cpp:414]     Test net output #1: loss = 2\n"
      "I1121 03:30:22.000000 1 solver.cpp:347] Iteration 9, Testing net (#0)\n"
      "I1121 03:30:22.000000 1 solver.cpp:414]     Test net output #0: accuracy = 0.5\n",
      "log", 2015);
  REQUIRE(tables);
  CHECK(tables->test.rows.size() == 2);
  CHECK(to_csv(tables->train, ',').empty());
}

TEST_CASE("dates with years are read as well, and tests with several outputs") {
  std::string log;
  for (const int iteration : {0, 10, 20}) {
    const std::string date =
        "I20260228 10:00:0" + std::to_string(iteration / 10) + ".25 7 solver.cpp:1] ";
    if (iteration == 0) log += date + "Solving\n";
    log += date + "Iteration " + std::to_string(iteration) + ", Testing net (#0)\n";
    log += date + "    Test net output #0: accuracy = 0.5\n";
    log += date + "    Test net output #1: loss = " + std::to_string(iteration) + "\n";
  }
  const auto tables = read_log_tables(log, "log", 1999);
  REQUIRE(tables);
  CHECK(to_csv(tables->test, ',') ==
        "NumIters,Seconds,LearningRate,accuracy,loss\r\n"
        "0.0,0.0,nan,0.5,0.0\r\n"
        "10.0,1.0,nan,0.5,10.0\r\n"
        "20.0,2.0,nan,0.5,20.0\r\n");
}

TEST_CASE("texts that are no log of a training are refused, whatever they hold") {
  for (const std::string text : {"", "\n", "Solving", "x Solving\n", "I Solving 1:2:3.4",
                                 "I9999 99:99:99.9 Solving", "I1340 10:00:00.1 1 Solving"}) {
    const auto tables = read_log_tables(text, "my.log", 2020);
    REQUIRE_FALSE(tables);
    CHECK(tables.error().code == ErrorCode::kData);
    CHECK(tables.error().message.find("my.log") != std::string::npos);
  }
}

}  // namespace
}  // namespace speedo
