#pragma once

// Two sides of an admission, or their files, without sockets.
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include <sys/stat.h>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include "gate/admission.hpp"
#include "gate/credentials.hpp"

namespace speedo::test {

inline constexpr std::uint32_t kSpoken = 8;
using Credentials = std::shared_ptr<const GateCredentials>;

// Tokens of one letter each, in files.
class TokenFolder {
 public:
  GateFiles files(const std::string& letters) const {
    const std::filesystem::path path = folder_ / ("token-" + letters);
    std::string text;
    for (const char letter : letters) text += std::string(43, letter) + "\n";
    std::ofstream(path) << text;
    ::chmod(path.c_str(), 0600);
    return {.token = path, .certificates = {}};
  }
  Credentials credentials(const std::string& letters) const {
    if (letters.empty()) return GateCredentials::none();
    return GateCredentials::load(files(letters), GateRole::kWorker).value();
  }

 private:
  TempDir folder_;
};

// Who listens and who calls, and what each has said that the other has not heard.
class Sides {
 public:
  struct Made {
    std::uint32_t protocol = kSpoken;
    GateRole role = GateRole::kWorker;
  };
  Sides(const Credentials& listens, const Credentials& calls) : Sides(listens, calls, Made{}) {}
  Sides(const Credentials& listens, const Credentials& calls, const Made& made)
      : listener(Admission::listen(listens, kSpoken, to_caller).value()),
        caller(Admission::call(calls, {made.protocol, made.role, "127.0.0.1"}).value()) {}

  static bool runs(const Admission& side) {
    return side.step() != Admission::Step::kAdmitted && side.step() != Admission::Step::kEnded;
  }

  // Delivers what is said, at most `piece` bytes at a time, until neither says anything. The
  // `flip`th byte that goes to one of them is changed on its way, if there is one.
  struct Flip {
    bool to_listener = true;
    std::size_t place = SIZE_MAX;
  };
  void run(std::size_t piece, const Flip& flip) {
    bool moved = true;
    while (moved) {
      moved = deliver(to_listener, *listener, to_caller, piece, sent_to_listener,
                      flip.to_listener ? flip.place : SIZE_MAX);
      moved |= deliver(to_caller, *caller, to_listener, piece, sent_to_caller,
                       flip.to_listener ? SIZE_MAX : flip.place);
    }
  }
  void run(std::size_t piece = SIZE_MAX) { run(piece, Flip{}); }
  bool both_in() const {
    return listener->step() == Admission::Step::kAdmitted &&
           caller->step() == Admission::Step::kAdmitted;
  }

  std::string to_listener, to_caller;
  std::size_t sent_to_listener = 0, sent_to_caller = 0;
  std::unique_ptr<Admission> listener, caller;

 private:
  static bool deliver(std::string& from, Admission& side, std::string& answers, std::size_t piece,
                      std::size_t& sent, std::size_t flipped) {
    if (from.empty() || !runs(side)) return false;
    std::string bytes = from.substr(0, piece);
    from.erase(0, bytes.size());
    if (flipped >= sent && flipped - sent < bytes.size()) {
      bytes[flipped - sent] = static_cast<char>(bytes[flipped - sent] ^ 0x11);
    }
    sent += bytes.size();
    side.receive(bytes, answers);
    return true;
  }
};

}  // namespace speedo::test
