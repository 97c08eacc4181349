#include "cli/report/event_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>

#include <fmt/format.h>

#include "base/process_name.hpp"
#include "tensorboard.pb.h"

namespace speedo {

namespace {

constexpr std::uint32_t kCastagnoli = 0x82F63B78U;  // its polynomial, lowest bit first
constexpr std::uint32_t kMaskDelta = 0xA282EAD8U;
constexpr const char* kFileVersion = "brain.Event:2";

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kCastagnoli : 0U);
    table[byte] = crc;
  }
  return table;
}

// Sums of sums are told apart from those of data by it.
std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15U) | (crc << 17U)) + kMaskDelta; }

// Lowest byte first.
template <class Number>
std::string bytes_of(Number number) {
  std::string bytes(sizeof number, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(number & 0xFFU);
    number = static_cast<Number>(number >> 8U);
  }
  return bytes;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = crc_table();
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes)
    crc = kTable[(crc ^ static_cast<std::uint8_t>(c)) & 0xFFU] ^ (crc >> 8U);
  return ~crc;
}

namespace {

Error no_events(const std::filesystem::path& folder, const std::string& why) {
  return {ErrorCode::kCannotWrite, "events for TensorBoard cannot be written to '" +
                                       folder.string() + "': " + why};
}

}  // namespace

std::string event_file_name(std::string host) {
  const auto is_odd = [](unsigned char c) { return c == '/' || c < 0x20 || c == 0x7f; };
  std::ranges::replace_if(host, is_odd, '_');
  return fmt::format("events.out.tfevents.{:010}.{}.{}", static_cast<std::int64_t>(seconds_now()),
                     host, ::getpid());
}

Result<std::unique_ptr<EventFile>> EventFile::create(const std::filesystem::path& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) return no_events(folder, code.message());
  const std::filesystem::path path = folder / event_file_name(host_name());
  std::ofstream stream(path, std::ios::binary | std::ios::app);
  if (!stream) return no_events(folder, std::strerror(errno));
  std::unique_ptr<EventFile> file(new EventFile(path, std::move(stream)));
  tensorboard::Event first;
  first.set_wall_time(seconds_now());
  first.set_file_version(kFileVersion);
  SPEEDO_TRY(file->write(first.SerializeAsString()));
  SPEEDO_TRY(file->flush());
  return file;
}

Result<void> EventFile::add(std::int64_t step, double seconds,
                            const std::vector<Scalar>& scalars) {
  tensorboard::Event event;
  event.set_wall_time(seconds);
  event.set_step(step);
  for (const Scalar& scalar : scalars) {
    tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
    value->set_tag(scalar.tag);
    value->set_simple_value(scalar.value);
  }
  return write(event.SerializeAsString());
}

Result<void> EventFile::add_start(std::int64_t step, double seconds) {
  tensorboard::Event event;
  event.set_wall_time(seconds);
  event.set_step(step);
  event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  return write(event.SerializeAsString());
}

Result<void> EventFile::flush() {
  if (stream_.flush()) return {};
  return Error{ErrorCode::kCannotWrite,
               "'" + path_.string() + "' cannot be written: " + std::strerror(errno)};
}

// Length, its sum, the event, its sum.
Result<void> EventFile::write(const std::string& event) {
  const std::string length = bytes_of(static_cast<std::uint64_t>(event.size()));
  const std::string record = length + bytes_of(masked(crc32c(length))) + event +
                             bytes_of(masked(crc32c(event)));
  if (stream_.write(record.data(), static_cast<std::streamsize>(record.size()))) return {};
  return flush();
}

}  // namespace speedo
