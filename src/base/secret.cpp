#include <speedo/base/secret.hpp>

#include <string.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo {

class Secret::Pages {
 public:
  static Result<std::shared_ptr<Pages>> create() {
    void* bytes =
        ::mmap(nullptr, kBytesMax, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) return Error{ErrorCode::kFull, "no memory for a password"};
    auto pages = std::make_shared<Pages>(static_cast<char*>(bytes));
    for (const int advice : {MADV_DONTDUMP, MADV_DONTFORK}) {
      if (::madvise(bytes, kBytesMax, advice) == 0) continue;
      return Error{ErrorCode::kUnsupported,
                   std::string("this system cannot keep a password out of core dumps (madvise): ") +
                       std::strerror(errno)};
    }
    return pages;
  }

  explicit Pages(char* bytes) : bytes_(bytes) {}
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() {
    ::explicit_bzero(bytes_, kBytesMax);
    ::munmap(bytes_, kBytesMax);
  }

  std::span<char> memory() { return {bytes_, kBytesMax}; }
  void set_size(std::size_t size) { size_ = size; }
  std::string_view text() const { return {bytes_, size_}; }

 private:
  char* const bytes_;
  std::size_t size_ = 0;
};

Secret::Secret(std::string_view text) {
  SPEEDO_ASSERT(text.size() <= kBytesMax);
  if (text.empty()) return;
  auto made = filled_by([&](std::span<char> memory) -> Result<std::size_t> {
    return text.copy(memory.data(), memory.size());
  });
  SPEEDO_ASSERT(made.has_value());
  *this = *std::move(made);
}

Result<Secret> Secret::filled_by(const Fill& fill) {
  SPEEDO_ASSIGN(const std::shared_ptr<Pages> pages, Pages::create());
  SPEEDO_ASSIGN(const std::size_t size, fill(pages->memory()));
  SPEEDO_ASSERT(size <= kBytesMax);
  pages->set_size(size);
  Secret secret;
  secret.pages_ = pages;
  return secret;
}

std::string_view Secret::reveal() const { return pages_ ? pages_->text() : std::string_view{}; }

}  // namespace speedo
