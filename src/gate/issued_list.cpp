#include "gate/issued_list.hpp"

#include <sstream>

#include <fmt/format.h>

#include <speedo/base/file.hpp>

namespace speedo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIssuedFile = "issued";

bool is_serial(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789ABCDEF") == std::string::npos;
}

Result<std::string> text_of_list(const fs::path& folder) {
  auto text = read_file(folder / kIssuedFile);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::string();
  return text;
}

}  // namespace

Result<std::vector<IssuedCertificate>> read_issued(const fs::path& folder) {
  SPEEDO_ASSIGN(const std::string text, text_of_list(folder));
  std::vector<IssuedCertificate> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    IssuedCertificate issued;
    std::string more;
    if (!(words >> issued.name >> issued.serial >> issued.expiry) || words >> more ||
        !is_serial(issued.serial)) {
      return Error{ErrorCode::kConfig,
                   fmt::format("'{}' line {} is not a NAME, a SERIAL and an EXPIRY: mend it, or "
                               "take it out",
                               (folder / kIssuedFile).string(), all.size() + 1)};
    }
    all.push_back(std::move(issued));
  }
  return all;
}

Result<void> add_issued(const fs::path& folder, const IssuedCertificate& issued) {
  SPEEDO_TRY(read_issued(folder));
  SPEEDO_ASSIGN(std::string text, text_of_list(folder));
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += fmt::format("{} {} {}\n", issued.name, issued.serial, issued.expiry);
  return write_file_atomically(folder / kIssuedFile, text);
}

}  // namespace speedo
