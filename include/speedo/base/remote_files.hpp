#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <speedo/base/result.hpp>

namespace speedo {

// Files that are named by a URI, as local copies.
// Thread safety: fetch() may be called from several threads at once.
class RemoteFiles {
 public:
  virtual ~RemoteFiles() = default;
  // Where the whole file at `uri` lies on this machine. Blocks for as long as its transfer takes.
  // Errors: kUsage for a URI that cannot be, kNotFound, kRefused, kData, kCorrupt if other bytes
  // came than were promised, kUnavailable, kTimeout, kFull, kCannotWrite.
  virtual Result<std::filesystem::path> fetch(const std::string& uri) = 0;
};

// The process's, for find_file(); null: none. Not owned. Requires: no other thread uses find_file()
// meanwhile.
void set_remote_files(RemoteFiles* files);

// Whether a name is SCHEME://..., and so no path.
bool is_uri(std::string_view name);

// A file's name, or several with commas between them, as people may see it: a URI without its
// query, which may hold a signature, and without a user's name and password. #sha256=HEX stays.
std::string shown_name(std::string_view name);

// What a user's name of a file or folder stands for: itself if it is a URI; else a path, as
// resolve_path() finds it, whether it exists or not. `base` may be a URI (as the folder of a
// prototxt that lies at one): a relative path that does not exist here is then one beneath it,
// written as by uri_beside().
std::string resolve_name(const std::string& name, const std::filesystem::path& base);

// The file that a user names, by resolve_name(); of a URI the local copy. Errors: those of
// RemoteFiles::fetch(); kUnsupported for a URI if the process has no remote files; kData for one
// that a worker was not told to read from (base/input_roots.hpp).
Result<std::filesystem::path> find_file(const std::string& name, const std::filesystem::path& base);

// Whether such an error of a URI's file may mean that there is none: S3 and HDFS refuse what is not
// there to one who may not list.
bool may_be_missing(const Error& error);

// What `name` means in a list that lies at a URI: a path is relative to that of the list, except
// for one that begins with a slash. Behind http(s):// it is a file's name whatever it holds, with
// %XX for what would say something else; #sha256=HEX at its end stays a digest.
std::string uri_beside(const std::string& list_uri, const std::string& name);

// `name` with `root` before it, as it is unless `root` is a URI: then as uri_beside() writes it,
// and without `root` if it is a URI itself.
std::string behind_root(const std::string& root, const std::string& name);

}  // namespace speedo
