#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>

#include "base/descriptor.hpp"
#include "remote/cache_room.hpp"
#include "remote/cache_uses.hpp"
#include "remote/remote_uri.hpp"

namespace speedo {

class PartialFile;

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
//   uses/PROCESS.uses           which of them a process uses (cache_uses.hpp)
//   room                        how much they take (cache_room.hpp); held by who changes that, or
//                               what is in use
//
// A record's own time of change is when the file was last asked for.
//
// Thread safety: from any thread.
class FileCache {
 public:
  struct Entry {
    std::filesystem::path file, partial, record, parts, lock;
    std::string name;   // in lists of uses
    std::string key;    // of the whole URI
    std::string shown;  // for people
  };
  using Stopped = std::function<bool()>;

  // Makes the folder, which only this user may enter, and looks whether it can be written.
  // `bytes_max`: of its files together; 0: no limit. Error: kCannotWrite, naming --data-cache.
  static Result<FileCache> open(const std::filesystem::path& folder, std::uint64_t bytes_max);

  const std::filesystem::path& folder() const { return folder_; }
  // Error: kUsage for a file name that is too long.
  Result<Entry> entry(const RemoteUri& uri) const;

  // Waits until no other process or thread changes the entry; it is the caller's as long as the
  // result lives. `stopped`: gives up. Errors: kCannotWrite, kUnavailable when stopped.
  Result<std::unique_ptr<Descriptor>> lock(const Entry& entry, const Stopped& stopped) const;

  // From here on, until this process ends, nobody removes the entry's file for want of room.
  // Requires: it is locked. Errors: as lock().
  Result<void> use(const Entry& entry, const Stopped& stopped) const;

  // The copy that lies there; nothing unless the record is this entry's, and the file has neither
  // another size nor another time of change than when it was put there. It counts as asked for now.
  static std::optional<CachedFile> find(const Entry& entry);
  // Puts what has come whole in place of the copy that lies there, if one does; find() says `facts`
  // of it from here on. Nobody counts files while one of them is neither here nor there. Requires:
  // the entry is locked, `whole` is of it and on the disk. Errors: as lock().
  Result<void> keep(const Entry& entry, const PartialFile& whole, const CachedFile& facts,
                    const Stopped& stopped) const;

  // Whether the disk has room for so many bytes of the entry, less what its partial file takes of
  // it already; and what is not in use makes room for them where the cache has a limit. They count
  // from here on, and must lie in its partial file before the result goes. Errors: kFull; those of
  // lock().
  Result<std::unique_ptr<Descriptor>> make_room(const Entry& entry, std::uint64_t bytes,
                                                const Stopped& stopped) const;

 private:
  FileCache(std::filesystem::path folder, std::uint64_t bytes_max);
  static Result<void> record(const Entry& entry, const CachedFile& file);
  Result<void> check_disk(const Entry& entry, std::uint64_t bytes) const;
  Result<std::unique_ptr<Descriptor>> lock_room(const Stopped& stopped) const;

  std::filesystem::path folder_;
  CacheRoom room_;
  std::unique_ptr<CacheUses> uses_;
};

}  // namespace speedo
