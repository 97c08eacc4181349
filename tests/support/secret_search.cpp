#include "support/secret_search.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace speedo::test {

namespace fs = std::filesystem;

namespace {

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Mapping {
  std::string name;  // the first line of its entry in smaps
  std::uint64_t first = 0, end = 0;
  bool resident = false, dumped = true;
};

std::vector<Mapping> mappings_of(pid_t process) {
  std::vector<Mapping> mappings;
  std::ifstream smaps("/proc/" + std::to_string(process) + "/smaps");
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    Mapping mapping{.name = line};
    char dash = 0;
    std::uint64_t kilobytes = 0;
    std::string word;
    if (words >> std::hex >> mapping.first >> dash >> mapping.end && dash == '-') {
      mappings.push_back(mapping);
    } else if (line.starts_with("Rss:")) {
      std::istringstream(line.substr(4)) >> kilobytes;
      mappings.back().resident = kilobytes > 0;
    } else if (line.starts_with("VmFlags:")) {
      mappings.back().dumped = (line + " ").find(" dd ") == std::string::npos;
    }
  }
  return mappings;
}

// Empty for what cannot be read, as the kernel's own pages.
std::string bytes_of(int memory, const Mapping& mapping) {
  std::string bytes(mapping.end - mapping.first, '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::pread(memory, bytes.data() + size, bytes.size() - size,
                                static_cast<off_t>(mapping.first + size));
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

Places in_text(const std::string& name, const std::string& content, const Texts& texts) {
  for (const std::string& text : texts) {
    if (content.find(text) != std::string::npos) return {name};
  }
  return {};
}

Places in_process_lists(const Texts& texts) {
  Places places;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); })) {
      continue;
    }
    for (const char* part : {"cmdline", "environ"}) {
      const fs::path path = entry.path() / part;
      const Places found = in_text(path, content_of(path), texts);
      places.insert(places.end(), found.begin(), found.end());
    }
  }
  return places;
}

Places in_files(const fs::path& folder, const Texts& texts,
                const std::vector<std::string>& except) {
  Places places;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const bool skipped =
        std::find(except.begin(), except.end(), entry.path().filename()) != except.end();
    if (skipped || !entry.is_regular_file()) continue;
    const Places found = in_text(entry.path(), content_of(entry.path()), texts);
    places.insert(places.end(), found.begin(), found.end());
  }
  return places;
}

Places in_memory(pid_t process, MemoryPart part, const Texts& texts) {
  const std::string path = "/proc/" + std::to_string(process) + "/mem";
  const int memory = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (memory < 0) throw std::runtime_error(path + " cannot be read");
  Places places;
  for (const Mapping& mapping : mappings_of(process)) {
    if (!mapping.resident || mapping.dumped != (part == MemoryPart::kDumped)) continue;
    // A sanitizer's own, of terabytes.
    if (mapping.end - mapping.first > std::uint64_t{1} << 40U) continue;
    const Places found = in_text(mapping.name, bytes_of(memory, mapping), texts);
    places.insert(places.end(), found.begin(), found.end());
  }
  ::close(memory);
  return places;
}

}  // namespace speedo::test
