#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>

#include "base/descriptor.hpp"
#include "remote/remote_uri.hpp"

namespace speedo {

// What a cache's record says of a file in it.
struct CachedFile {
  std::string version;  // as the server had it; empty: it had none
  std::uint64_t bytes = 0;
  std::string sha256;  // empty: nobody has asked for it
};

// A folder with copies of remote files, for all processes of one user on a machine:
//
//   files/FOLDER/NAME           whole files; FOLDER stands for a remote folder, so files that lie
//                               side by side there do so here
//   partial/FOLDER/NAME         one on its way
//   records/FOLDER/NAME.file    whose copy it is, and of which version
//   records/FOLDER/NAME.parts   what of it has come
//   records/FOLDER/NAME.lock    held by the one process that changes any of these
//
// Thread safety: from any thread.
class FileCache {
 public:
  struct Entry {
    std::filesystem::path file, partial, record, parts, lock;
    std::string key;    // of the whole URI
    std::string shown;  // for people
  };
  // Makes the folder, which only this user may enter, and looks whether it can be written. Error:
  // kCannotWrite, naming --data-cache.
  static Result<FileCache> open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  // Error: kUsage for a file name that is too long.
  Result<Entry> entry(const RemoteUri& uri) const;

  // Waits until no other process or thread changes the entry; it is the caller's as long as the
  // result lives. `stopped`: gives up. Errors: kCannotWrite, kUnavailable when stopped.
  Result<std::unique_ptr<Descriptor>> lock(const Entry& entry,
                                           const std::function<bool()>& stopped) const;

  // The copy that lies there; nothing unless the record is this entry's, and the file has neither
  // another size nor another time of change than when it was put there.
  static std::optional<CachedFile> find(const Entry& entry);
  // What find() is to say of the file that lies there from here on. Error: kCannotWrite.
  static Result<void> record(const Entry& entry, const CachedFile& file);
  // Makes find() say nothing.
  static Result<void> forget(const Entry& entry);

  // Room on the disk for so many bytes more? Error: kFull.
  Result<void> check_room(const std::string& shown, std::uint64_t bytes) const;

 private:
  explicit FileCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;
};

}  // namespace speedo
