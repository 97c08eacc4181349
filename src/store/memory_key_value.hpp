#pragma once

#include <map>
#include <mutex>
#include <string>

#include "store/key_value.hpp"

namespace speedo {

// A map in memory. Operations are done before submit() returns.
class MemoryKeyValue : public KeyValue {
 public:
  void submit(KvPtr operation) override;
  Result<void> erase_all(std::string_view prefix) override;

 private:
  using Value = std::shared_ptr<const std::string>;
  void set(KvOperation& operation);
  void get(KvOperation& operation);
  std::mutex mutex_;
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace speedo
