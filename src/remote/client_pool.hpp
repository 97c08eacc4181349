#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "remote/http_client.hpp"

namespace speedo {

// Clients whose connections are kept between files. Thread safety: from any thread.
class ClientPool {
 public:
  // The terms must outlive it.
  explicit ClientPool(const RemoteTerms& terms) : terms_(terms) {}

  // One that is free, or a new one.
  Result<std::unique_ptr<HttpClient>> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return HttpClient::create(terms_);
    std::unique_ptr<HttpClient> client = std::move(free_.back());
    free_.pop_back();
    return client;
  }
  void put_back(std::unique_ptr<HttpClient> client) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(client));
  }

 private:
  const RemoteTerms& terms_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<HttpClient>> free_;
};

}  // namespace speedo
