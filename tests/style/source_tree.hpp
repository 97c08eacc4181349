#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace speedo {

// One file of the project as the tidy rules see it.
struct SourceFile {
  std::string path;                // from the project's root, with '/'
  std::string text;
  std::vector<std::string> lines;  // without line ends

  bool in(std::string_view folder) const;      // path starts with "folder/"
  bool has_suffix(std::string_view suffix) const;
  bool is_header() const { return has_suffix(".hpp"); }
  bool is_source() const { return has_suffix(".cpp") || has_suffix(".cu"); }
  bool is_code() const { return is_header() || is_source(); }
  std::string stem() const;                    // file name without folder and last extension
  std::vector<std::string> includes() const;   // what stands between <> or ""
};

// Every file of the checkout at `root` that git tracks or would track. Empty outside a checkout.
std::vector<SourceFile> read_source_tree(const std::filesystem::path& root);

// `line` with string literals and comments blanked out, so that words in them do not count.
std::string code_of(const std::string& line);

// Whether `word` stands in `code` as a whole identifier.
bool has_word(const std::string& code, std::string_view word);

}  // namespace speedo
