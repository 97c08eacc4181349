#pragma once

namespace speedo {

// The page that shows a job to people: page.html, whole, with nothing from elsewhere.
extern const char* const kMonitorPage;

}  // namespace speedo
