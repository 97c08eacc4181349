#pragma once

#include <filesystem>
#include <memory>

#include <speedo/base/remote_files.hpp>

#include "remote/remote_terms.hpp"

namespace speedo {

// Files at http(s)://, s3:// and hdfs:// URIs, fetched into a cache that all processes of one user
// share: a file is fetched by one of them. Each process asks the server once whether its copy is
// still the file; a URI with #sha256= is its own proof, and needs no server once it is there.
// `folder`: of the cache, made when a URI is asked for.
std::unique_ptr<RemoteFiles> make_remote_file_cache(const std::filesystem::path& folder,
                                                    const RemoteTerms& terms);

// $XDG_CACHE_HOME/speedo, else ~/.cache/speedo; empty if neither variable is set.
std::filesystem::path default_cache_folder();

}  // namespace speedo
