#include "sim/fault_ledger.hpp"

#include <string>

#include "support/catch.hpp"

namespace speedo::sim {
namespace {

FaultTable all_felt() {
  FaultTable table{};
  table.fill({kDrawnForVerdict, kDrawnForVerdict, 1});
  return table;
}

}  // namespace

TEST_CASE("a campaign names the kinds of fault that never struck or were never felt") {
  CHECK(idle_kinds(all_felt()).empty());
  for (int i = 0; i < kFaultKinds; ++i) {
    const auto kind = static_cast<FaultKind>(i);
    FaultTable table = all_felt();
    FaultCount& count = table[static_cast<std::size_t>(i)];
    count.effects = 0;
    CHECK(idle_kinds(table) == std::vector{kind});
    CHECK(describe_idle(kind, count).find(to_string(kind)) != std::string::npos);
    CHECK(describe_idle(kind, count).find("never had an effect") != std::string::npos);
    count.strikes = 0;
    CHECK(idle_kinds(table) == std::vector{kind});
    CHECK(describe_idle(kind, count).find("never struck") != std::string::npos);
    count.drawn = 0;
    CHECK(idle_kinds(table).empty());  // too few of all kinds
    add(all_felt(), table);
    count.drawn = 0;
    CHECK(idle_kinds(table) == std::vector{kind});
    CHECK(describe_idle(kind, count).find("never drawn") != std::string::npos);
  }
}

TEST_CASE("a campaign that drew few faults of a kind says nothing of it") {
  FaultTable table{};
  CHECK(idle_kinds(table).empty());
  table.fill({kDrawnForVerdict - 1, 0, 0});
  CHECK(idle_kinds(table).empty());
  add(table, table);
  CHECK(idle_kinds(table).size() == kFaultKinds);
}

TEST_CASE("a fault counts once, whoever feels it, and one that was felt has struck") {
  FaultLedger ledger;
  const FaultMark first = ledger.drawn(FaultKind::kBadStore);
  const FaultMark copy = first, second = ledger.drawn(FaultKind::kBadStore);
  const auto count = [&] { return ledger.table()[static_cast<std::size_t>(FaultKind::kBadStore)]; };
  CHECK(count() == FaultCount{2, 0, 0});
  first.struck();
  CHECK(count() == FaultCount{2, 1, 0});
  first.felt();
  copy.felt();
  CHECK(count() == FaultCount{2, 1, 1});
  second.felt();
  CHECK(count() == FaultCount{2, 2, 2});
  FaultMark().felt();
  CHECK(count() == FaultCount{2, 2, 2});
}

}  // namespace speedo::sim
