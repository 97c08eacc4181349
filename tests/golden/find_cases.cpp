// A case is recognised by its files alone, so that folders of new fixtures need no list.

#include <algorithm>
#include <optional>
#include <system_error>

#include "golden/golden_case.hpp"

namespace speedo::golden {
namespace {

namespace fs = std::filesystem;

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

fs::path without(const fs::path& path, const std::string& end) {
  const std::string text = path.string();
  return text.substr(0, text.size() - end.size());
}

bool has_sibling(const fs::path& stem, const std::string& end) {
  return fs::exists(stem.string() + end);
}

bool is_case_folder(const fs::path& folder) {
  return fs::exists(folder / "io.h5") || fs::exists(folder / "trace.h5");
}

bool has_deploy_net(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (ends_with(entry.path().string(), ".deploy.prototxt")) return true;
  }
  return false;
}

std::string name_of(const fs::path& path) {
  return (path.parent_path().filename() / path.filename()).string();
}

std::optional<Case> folder_case(const fs::path& folder) {
  const std::string name = name_of(folder);
  if (fs::exists(folder / "io.h5") && fs::exists(folder / "net.prototxt")) {
    return Case{name, folder, folder, &run_net_case};
  }
  if (fs::exists(folder / "trace.h5") && fs::exists(folder / "solver.prototxt")) {
    return Case{name, folder, folder, &run_solver_case};
  }
  return std::nullopt;
}

std::optional<Case> file_case(const fs::path& file) {
  const std::string text = file.string();
  const fs::path folder = file.parent_path();
  if (ends_with(text, ".in.prototxt")) {
    const fs::path stem = without(file, ".in.prototxt");
    if (!has_sibling(stem, ".out.prototxt")) return std::nullopt;
    return Case{name_of(stem), stem, folder, &run_upgrade_case};
  }
  if (ends_with(text, ".caffemodel") && !ends_with(text, ".upgraded.caffemodel")) {
    if (!has_deploy_net(folder)) return std::nullopt;
    const fs::path stem = without(file, ".caffemodel");
    return Case{name_of(stem), stem, folder, &run_weights_case};
  }
  if (file.filename() == "finetune.log" && fs::exists(folder / "solver.prototxt")) {
    // Other runs logged beside it wrote snapshots of the same names before this one did.
    const fs::path stem = without(file, ".log");
    return Case{name_of(stem), stem, folder, &run_log_case};
  }
  if (ends_with(text, ".prototxt")) {
    // A data set's expectations lie one folder below the data.
    const fs::path stem = without(file, ".prototxt");
    const fs::path data = folder.parent_path();
    const std::string name = (data.filename() / stem.filename()).string();
    if (has_sibling(stem, ".h5")) return Case{name, stem, data, &run_dataset_case};
    if (has_sibling(stem, "_file.h5")) return Case{name, stem, data, &run_output_case};
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<Case>> find_cases(const fs::path& folder) {
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error || !fs::is_directory(root)) {
    return Error{ErrorCode::kNotFound, "no folder " + folder.string() + "; name one with fixtures"};
  }
  std::vector<Case> cases;
  const auto add = [&](std::optional<Case> found) {
    if (found) cases.push_back(*std::move(found));
  };
  add(folder_case(root));
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_directory()) {
      add(folder_case(entry.path()));
    } else if (!is_case_folder(entry.path().parent_path())) {
      add(file_case(entry.path()));
    }
  }
  std::sort(cases.begin(), cases.end(),
            [](const Case& a, const Case& b) { return a.path < b.path; });
  return cases;
}

}  // namespace speedo::golden
