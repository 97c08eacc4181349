#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace speedo {

// Memory that a thread works in for a moment and leaves, grown as it is, to the next. There are as
// many pieces as threads ever worked at once.
// Thread safety: take() may be called from any thread. Requires: the pool outlives its loans.
template <class Piece>
class ScratchPool {
 public:
  class Loan {
   public:
    Loan(ScratchPool& pool, std::unique_ptr<Piece> piece) : pool_(pool), piece_(std::move(piece)) {}
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() {
      const std::lock_guard lock(pool_.mutex_);
      pool_.free_.push_back(std::move(piece_));
    }
    Piece& operator*() const { return *piece_; }
    Piece* operator->() const { return piece_.get(); }

   private:
    ScratchPool& pool_;
    std::unique_ptr<Piece> piece_;
  };

  // A piece that nobody has; one made of `arguments` if there is none.
  template <class... Arguments>
  Loan take(Arguments&&... arguments) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<Piece> piece = std::move(free_.back());
        free_.pop_back();
        return Loan(*this, std::move(piece));
      }
    }
    return Loan(*this, std::make_unique<Piece>(std::forward<Arguments>(arguments)...));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Piece>> free_;  // guarded by mutex_
};

}  // namespace speedo
