#pragma once

#include <cstdint>

#include <google/protobuf/message.h>

namespace speedo::fuzz {

// Changes one thing in a message, somewhere in it: a number, a name for another that occurs in it,
// a field that appears or goes, an element that is repeated or lost. What it does is drawn from the
// seed.
void mutate(google::protobuf::Message& message, std::uint32_t seed);

}  // namespace speedo::fuzz
