#pragma once

// What CAF 0.17 nodes say to one another, as bytes.
#include <cstdint>
#include <string>
#include <string_view>

namespace speedo::test {

inline std::string big_endian(std::uint64_t number, int size) {
  std::string bytes;
  for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
    bytes += static_cast<char>(number >> shift & 0xFFU);
  }
  return bytes;
}

struct BaspHeader {
  std::uint8_t operation = 0, flags = 0;
  std::uint64_t data = 0, source = 0, target = 0;
};

inline std::string basp(const BaspHeader& header, const std::string& payload) {
  return big_endian(header.operation, 1) + big_endian(0, 2) + big_endian(header.flags, 1) +
         big_endian(payload.size(), 4) + big_endian(header.data, 8) +
         big_endian(header.source, 8) + big_endian(header.target, 8) + payload;
}

// A process at a host, both made of one letter.
inline std::string basp_node(char letter) {
  return std::string("\x00\x00\x3e\x9a\xab\x9b\xac\x79", 8) + std::string(24, letter);
}

inline std::string client_handshake(char node) { return basp({.operation = 1}, basp_node(node)); }

inline std::string server_handshake(char node, const std::string& application) {
  return basp({.operation = 0, .data = 3, .source = 6},
              basp_node(node) + "\x01" + static_cast<char>(application.size()) + application +
                  big_endian(6, 8) + std::string(1, '\0'));
}

inline constexpr std::uint64_t kBaspAsync = std::uint64_t{1} << 60U;

// `type`: as CAF writes it down, "@<>+NAME".
inline std::string basp_content(const std::string& type, const std::string& fields = "") {
  return std::string(3, '\0') + static_cast<char>(type.size()) + type + fields;
}
inline std::string direct_message(const std::string& type, const std::string& fields = "") {
  return basp({.operation = 2, .data = kBaspAsync, .source = 8, .target = 6},
              basp_content(type, fields));
}

inline constexpr const char* kCafApplication = "speedo/8";
inline std::string hello() { return direct_message("@<>+speedo::HelloMessage", "fields"); }

inline std::string monitor_note(char from, char to) {
  return basp({.operation = 4, .target = 7}, basp_node(from) + basp_node(to));
}
inline std::string down_note(char from, char to, const std::string& content) {
  return basp({.operation = 5, .source = 8},
              basp_node(from) + basp_node(to) + std::string(8, '\0') + "\x0f" +
                  std::string(2, '\0') + content);
}
inline std::string heartbeat() { return basp({.operation = 6}, ""); }

}  // namespace speedo::test
