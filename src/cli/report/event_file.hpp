#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

struct Scalar {
  std::string tag;
  float value = 0.0F;
};

// A file of curves that TensorBoard reads: TFRecords of events. Thread safety: one thread at a
// time.
class EventFile {
 public:
  // Creates the folder, if it is missing, and in it a file with a name that is not there yet.
  // Error: kCannotWrite.
  static Result<std::unique_ptr<EventFile>> create(const std::filesystem::path& folder);

  // One point of each curve, at `seconds` since 1970. Error: kCannotWrite; what is in the file
  // stays readable.
  Result<void> add(std::int64_t step, double seconds, const std::vector<Scalar>& scalars);
  // Says that a training goes on with `step`: readers drop what they have of it and of later ones,
  // also from older files of the folder. Error: as above.
  Result<void> add_start(std::int64_t step, double seconds);
  // What was added is readable by others. Error: kCannotWrite.
  Result<void> flush();

  const std::filesystem::path& path() const { return path_; }

 private:
  EventFile(std::filesystem::path path, std::ofstream stream)
      : path_(std::move(path)), stream_(std::move(stream)) {}
  Result<void> write(const std::string& event);

  std::filesystem::path path_;
  std::ofstream stream_;
};

// What TensorBoard takes for such a file: readers take what sorts last for the newest. Of a host
// with letters that no file's name should have, others stand for these.
std::string event_file_name(std::string host);

// CRC-32C (Castagnoli), as TFRecords have it.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace speedo
