#include "style/source_tree.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace speedo {

namespace {

bool is_identifier(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// What git tracks or would track, and that still exists.
std::vector<std::string> project_paths(const std::filesystem::path& root) {
  std::vector<std::string> paths;
  // A checkout that another user owns is read all the same.
  const std::string command = "git -c safe.directory='*' -C '" + root.string() +
                              "' ls-files -co --exclude-standard";
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return paths;
  char* line = nullptr;
  std::size_t capacity = 0;
  for (ssize_t length; (length = ::getline(&line, &capacity, pipe)) > 0;) {
    const std::string path(line, static_cast<std::size_t>(length - 1));
    if (std::filesystem::is_regular_file(root / path)) paths.push_back(path);
  }
  std::free(line);
  ::pclose(pipe);
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

bool SourceFile::in(std::string_view folder) const {
  return path.size() > folder.size() && path.compare(0, folder.size(), folder) == 0 &&
         path[folder.size()] == '/';
}

bool SourceFile::has_suffix(std::string_view suffix) const {
  return path.size() >= suffix.size() &&
         path.compare(path.size() - suffix.size(), suffix.size(), suffix) == 0;
}

std::string SourceFile::stem() const { return std::filesystem::path(path).stem().string(); }

std::vector<std::string> SourceFile::includes() const {
  std::vector<std::string> found;
  for (const std::string& line : lines) {
    if (line.rfind("#include", 0) != 0) continue;
    const auto open = line.find_first_of("<\"");
    const auto close = line.find_last_of(">\"");
    if (open != std::string::npos && close > open) {
      found.push_back(line.substr(open + 1, close - open - 1));
    }
  }
  return found;
}

std::vector<SourceFile> read_source_tree(const std::filesystem::path& root) {
  std::vector<SourceFile> files;
  for (const std::string& path : project_paths(root)) {
    SourceFile file;
    file.path = path;
    std::ifstream stream(root / path, std::ios::binary);
    std::ostringstream content;
    content << stream.rdbuf();
    file.text = std::move(content).str();
    file.lines = split_lines(file.text);
    files.push_back(std::move(file));
  }
  return files;
}

std::string code_of(const std::string& line) {
  std::string code = line;
  bool quoted = false;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (quoted) {
      if (code[i] == '\\' && i + 1 < code.size()) {
        code[i] = ' ';
        code[++i] = ' ';
      } else if (code[i] == '"') {
        quoted = false;
      } else {
        code[i] = ' ';
      }
    } else if (code[i] == '"' && (i == 0 || code[i - 1] != '\'')) {
      quoted = true;
    } else if (code[i] == '/' && i + 1 < code.size() && code[i + 1] == '/') {
      code.resize(i);
    }
  }
  return code;
}

bool has_word(const std::string& code, std::string_view word) {
  for (std::size_t at = code.find(word); at != std::string::npos; at = code.find(word, at + 1)) {
    const bool starts = at == 0 || !is_identifier(code[at - 1]);
    const std::size_t end = at + word.size();
    const bool ends = end >= code.size() || !is_identifier(code[end]);
    if (starts && ends) return true;
  }
  return false;
}

}  // namespace speedo
