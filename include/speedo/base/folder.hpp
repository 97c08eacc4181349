#pragma once

#include <filesystem>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// The folder that holds `path`; "." for a bare name.
std::filesystem::path folder_of(const std::filesystem::path& path);

// Whether /proc names it, as it does the open file that /dev/stdout leads to.
bool is_of_proc(const std::filesystem::path& path);

// What lies where the links from `path` on lead to, whether it is there or not; those of /proc,
// whose texts are not always paths, aside.
std::filesystem::path behind_links(std::filesystem::path path);

// What lies in a folder, sorted, each as `folder / name`. Errors: kNotFound; kRefused if it may not
// be read; kData if the disk fails. Never throws, unlike a directory_iterator that is advanced.
Result<std::vector<std::filesystem::path>> list_folder(const std::filesystem::path& folder);

}  // namespace speedo
