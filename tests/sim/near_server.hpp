#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/proof_store.hpp"
#include "store/key_value.hpp"

namespace speedo::sim {

// The store's server without a way to it: operations are executed at once. It outlives this.
class NearServer : public KeyValue {
 public:
  explicit NearServer(StoreServer& server) : server_(server) {}
  void submit(KvPtr operation) override { server_.execute(std::move(operation)); }
  Result<std::vector<std::string>> list(std::string_view prefix) override {
    return server_.map().list(prefix);
  }

 private:
  StoreServer& server_;
};

}  // namespace speedo::sim
