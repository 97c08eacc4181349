#pragma once

#include <memory>

#include <speedo/cpu/cpu_backend.hpp>
#include <speedo/train/trainer.hpp>

#include "support/generated_feeds.hpp"

namespace speedo::test {

// A trainer's parts without files: one thread of the CPU, generated records.
inline TrainerParts cpu_parts() {
  return {.make_backend = []() -> Result<std::unique_ptr<Backend>> { return make_cpu_backend(1); },
          .make_feeds = []() -> std::unique_ptr<FeedFactory> {
            return std::make_unique<GeneratedFeeds>();
          }};
}

}  // namespace speedo::test
