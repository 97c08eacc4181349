#include "base/note_interval.hpp"

#include "support/catch.hpp"

namespace speedo {
namespace {

using std::chrono::seconds;

TEST_CASE("what goes on is said at once, and again after an interval") {
  NoteInterval notes;
  CHECK(!notes.end());
  CHECK(notes.is_due(seconds(5)));
  CHECK(!notes.is_due(seconds(6)));
  CHECK(!notes.is_due(seconds(4) + kWaitingNoteInterval));
  CHECK(notes.is_due(seconds(5) + kWaitingNoteInterval));
  CHECK(!notes.is_due(seconds(6) + kWaitingNoteInterval));
}

TEST_CASE("what begins anew is said at once") {
  NoteInterval notes;
  CHECK(notes.is_due(seconds(0)));
  CHECK(notes.end());
  CHECK(!notes.end());
  CHECK(notes.is_due(seconds(1)));
}

}  // namespace
}  // namespace speedo
