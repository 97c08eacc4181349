#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <speedo/core/net.hpp>

namespace speedo {

// How the gradients of a net travel between a master and so many workers with --replicated: bytes
// that one worker sends and receives in a round.
struct ExchangePlan {
  struct Layer {
    std::string name;
    double whole_bytes = 0.0;         // its gradients and their means
    double factor_bytes = 0.0;        // the same with factors where it has them; 0: it has none
    bool travels_as_factors = false;  // the fewer bytes
    double sent_bytes = 0.0;          // of what travels, from the worker; the rest is to it
  };
  std::uint64_t workers = 1;
  std::vector<Layer> layers;          // with parameters of their own, in the net's order

  double whole_bytes() const;   // of all layers: also without --replicated, with weights for means
  double chosen_bytes() const;
  double sent_bytes() const;
};

ExchangePlan plan_exchange(const Net& net, std::uint64_t workers);
std::string to_text(const ExchangePlan& plan);
nlohmann::ordered_json to_json(const ExchangePlan& plan);

}  // namespace speedo
