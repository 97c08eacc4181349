#include "data/hdf5/hdf5_in_helper.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "base/descriptor.hpp"
#include "base/input_roots.hpp"
#include "base/text_of.hpp"
#include "data/hdf5/hdf5_task.hpp"

namespace speedo {

namespace {

// As the library does with files that it opens itself: one that somebody writes is not read.
bool is_being_written(int file) {
  const char* const wish = std::getenv("HDF5_USE_FILE_LOCKING");
  if (wish != nullptr && std::string_view(wish) == "FALSE") return false;
  return ::flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

class Hdf5InHelper : public Hdf5Access {
 public:
  Hdf5InHelper(HelperLoan helper, Descriptor file, std::string name, std::int64_t bytes)
      : helper_(std::move(helper)), file_(std::move(file)), name_(std::move(name)) {
    opening_ = {.kind = static_cast<std::uint32_t>(Hdf5Task::kOpen),
                .numbers = {bytes},
                .input = std::as_bytes(std::span(name_)),
                .file = file_.get()};
  }

  // The helper may have the file open until it is given another.
  ~Hdf5InHelper() override { ::flock(file_.get(), LOCK_UN); }
  Hdf5InHelper(const Hdf5InHelper&) = delete;
  Hdf5InHelper& operator=(const Hdf5InHelper&) = delete;

  Result<void> open() {
    subject_ = fmt::format("HDF5 file '{}'", name_);
    opening_.subject = subject_;
    auto opened = helper_.run(opening_);
    return opened ? Result<void>() : Result<void>(std::move(opened).error());
  }

  Result<bool> has(const std::string& path) override { return ask(Hdf5Task::kHas, path); }
  Result<bool> is_dataset(const std::string& path) override {
    return ask(Hdf5Task::kIsDataset, path);
  }

  Result<std::vector<std::string>> children(const std::string& group) override {
    SPEEDO_ASSIGN(const std::string all, text(Hdf5Task::kChildren, group));
    std::vector<std::string> names;
    for (std::size_t begin = 0; begin < all.size();) {
      const std::size_t end = std::min(all.find('\0', begin), all.size());
      names.push_back(all.substr(begin, end - begin));
      begin = end + 1;
    }
    return names;
  }

  Result<std::vector<std::int64_t>> dims(const std::string& dataset) override {
    SPEEDO_ASSIGN(const HelperReply reply, run(Hdf5Task::kDims, dataset));
    std::vector<std::int64_t> extents(reply.output.size() / sizeof(std::int64_t));
    if (extents.size() > kBlobAxesMax) return hdf5_fault(name_, dataset, "has no simple shape");
    // A scalar has none.
    if (extents.empty()) return extents;
    std::memcpy(extents.data(), reply.output.data(), extents.size() * sizeof(std::int64_t));
    std::int64_t count = 1;
    for (const std::int64_t extent : extents) {
      if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) {
        return hdf5_fault(name_, dataset, "has a shape whose product overflows");
      }
    }
    return extents;
  }

  Result<void> check_size(const std::string& dataset) override {
    auto checked = run(Hdf5Task::kCheckSize, dataset);
    return checked ? Result<void>() : Result<void>(std::move(checked).error());
  }

  // As many rows at a time as the helper's memory has room for.
  Result<void> read_rows(const std::string& dataset, std::int64_t first, std::int64_t count,
                         std::span<float> target) override {
    if (target.empty()) return {};
    SPEEDO_ASSERT(count > 0);
    const std::size_t row = target.size() / static_cast<std::size_t>(count);
    const std::int64_t at_once = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(helper_.window_bytes() / 2 / sizeof(float) / row), 1, count);
    for (std::int64_t done = 0; done < count; done += at_once) {
      const std::int64_t rows = std::min(at_once, count - done);
      const std::span<float> part = target.subspan(static_cast<std::size_t>(done) * row,
                                                   static_cast<std::size_t>(rows) * row);
      SPEEDO_TRY(read_part(dataset, first + done, rows, part));
    }
    return {};
  }

  Result<std::int64_t> read_integer(const std::string& dataset) override {
    SPEEDO_ASSIGN(const HelperReply reply, run(Hdf5Task::kReadInteger, dataset));
    return reply.numbers[0];
  }
  Result<std::string> read_string(const std::string& dataset) override {
    return text(Hdf5Task::kReadString, dataset);
  }

 private:
  Result<HelperReply> run(Hdf5Task kind, const std::string& object,
                          const HelperNumbers& numbers = {}) {
    const std::string subject = fmt::format("HDF5 file '{}': '{}'", name_, object);
    return helper_.run({.kind = static_cast<std::uint32_t>(kind),
                        .numbers = numbers,
                        .input = std::as_bytes(std::span(object)),
                        .subject = subject},
                       &opening_);
  }

  Result<bool> ask(Hdf5Task kind, const std::string& object) {
    SPEEDO_ASSIGN(const HelperReply reply, run(kind, object));
    return reply.numbers[0] != 0;
  }

  Result<std::string> text(Hdf5Task kind, const std::string& object) {
    SPEEDO_ASSIGN(const HelperReply reply, run(kind, object));
    return std::string(text_of(reply.output));
  }

  Result<void> read_part(const std::string& dataset, std::int64_t first, std::int64_t rows,
                         std::span<float> target) {
    SPEEDO_ASSIGN(
        const HelperReply reply,
        run(Hdf5Task::kReadRows, dataset, {first, rows, static_cast<std::int64_t>(target.size())}));
    if (reply.output.size() != target.size_bytes()) {
      return hdf5_fault(name_, dataset, "was not read as a whole");
    }
    std::memcpy(target.data(), reply.output.data(), target.size_bytes());
    return {};
  }

  HelperLoan helper_;
  const Descriptor file_;
  const std::string name_;
  std::string subject_;
  HelperTask opening_;  // for a helper in place of one that died
};

}  // namespace

Result<std::unique_ptr<Hdf5Access>> open_hdf5_in_helper(HelperLoan helper,
                                                        const std::filesystem::path& path) {
  SPEEDO_ASSIGN(Descriptor file, open_input(path));
  struct stat found {};
  if (::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode) || is_being_written(file.get())) {
    return unreadable_hdf5(path.string());
  }
  auto opened = std::make_unique<Hdf5InHelper>(std::move(helper), std::move(file), path.string(),
                                               static_cast<std::int64_t>(found.st_size));
  SPEEDO_TRY(opened->open());
  return std::unique_ptr<Hdf5Access>(std::move(opened));
}

}  // namespace speedo
