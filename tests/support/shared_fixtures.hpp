#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

// The larger set of fixtures, which no test needs: some check more where it is there.

namespace speedo::test {

// Where the set is looked for: what SPEEDO_SHARED_DIR of the environment names, else `shared`
// beside the checkout, in which tests run.
inline std::filesystem::path shared_folder() {
  const char* named = std::getenv("SPEEDO_SHARED_DIR");
  if (named != nullptr && *named != '\0') return named;
  return std::filesystem::current_path().parent_path() / "shared";
}

// Its file or folder `name`, which is printed; nothing if the set is not there.
inline std::optional<std::filesystem::path> shared_fixtures(const std::string& name) {
  const std::filesystem::path path = shared_folder() / name;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  std::fprintf(stderr, "larger set of fixtures: %s\n", path.c_str());
  return path;
}

// Why a test that is about the set cannot run.
inline std::string no_shared_fixtures(const std::string& name) {
  return "there is no " + (shared_folder() / name).string() + "; set SPEEDO_SHARED_DIR";
}

}  // namespace speedo::test
