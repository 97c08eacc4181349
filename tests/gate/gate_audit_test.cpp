#include "gate/gate_audit.hpp"

#include "support/catch.hpp"

namespace speedo {

TEST_CASE("of many lines few are written, and the next one says how many were not") {
  AuditPacer pacer;
  Instant now{0};
  for (int i = 0; i < AuditPacer::kLinesMax; ++i) CHECK(pacer.admit(now) == 0U);
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(pacer.admit(now));
  now += AuditPacer::kWindow;
  CHECK(pacer.admit(now) == 1000U);
  CHECK(pacer.admit(now) == 0U);
}

TEST_CASE("the counts in words have each of them") {
  const GateCounts counts{.connections = 21,
                          .admitted = 6,
                          .strangers = 5,
                          .refused = 4,
                          .late = 3,
                          .displaced = 2,
                          .cut = 1};
  CHECK(counts.turned_away() == 15);
  CHECK(to_text(counts) == "21 connections, 6 let in; turned away: 5 strangers, 4 refused, "
                           "3 too slow, 2 displaced, 1 cut");
}

}  // namespace speedo
