#include "remote/remote_file_cache.hpp"

#include <mutex>
#include <optional>
#include <system_error>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/clock.hpp>

#include "base/log.hpp"
#include "base/memory_limit.hpp"
#include "remote/aws_settings.hpp"
#include "remote/file_cache.hpp"
#include "remote/transfer.hpp"

namespace speedo {

namespace {

class RemoteFileCache : public RemoteFiles {
 public:
  RemoteFileCache(std::filesystem::path folder, RemoteTerms terms)
      : folder_(std::move(folder)), terms_(std::move(terms)), clients_(terms_) {}

  Result<std::filesystem::path> fetch(const std::string& text) override {
    SPEEDO_ASSIGN(const RemoteUri uri, parse_uri(text));
    SPEEDO_ASSIGN(const FileCache* const cache, cache_folder());
    SPEEDO_ASSIGN(const FileCache::Entry entry, cache->entry(uri));
    if (was_seen(text, entry)) return entry.file;
    SPEEDO_ASSIGN(const std::unique_ptr<Descriptor> lock, cache->lock(entry, terms_.stopped));
    SPEEDO_TRY(cache->use(entry, terms_.stopped));
    SPEEDO_TRY(bring_up_to_date(*cache, entry, uri));
    const std::lock_guard guard(mutex_);
    seen_.insert(text);
    return entry.file;
  }

 private:
  // Made with the first URI.
  Result<const FileCache*> cache_folder() {
    const std::lock_guard guard(mutex_);
    if (!cache_) {
      if (folder_.empty()) {
        return usage_error(
            "remote files need a cache: give a folder with --data-cache, as "
            "neither XDG_CACHE_HOME nor HOME is set");
      }
      SPEEDO_ASSIGN(FileCache opened, FileCache::open(folder_, terms_.cache_bytes_max));
      cache_.emplace(std::move(opened));
    }
    return &*cache_;
  }

  bool was_seen(const std::string& text, const FileCache::Entry& entry) {
    const std::lock_guard guard(mutex_);
    std::error_code code;
    return seen_.count(text) != 0 && std::filesystem::exists(entry.file, code);
  }

  // Read with the first URI that needs it.
  Result<const AwsSettings*> aws_settings() {
    const std::lock_guard guard(mutex_);
    if (!aws_) {
      SPEEDO_ASSIGN(AwsSettings settings, read_aws_settings());
      aws_ = std::move(settings);
    }
    return &*aws_;
  }

  Result<std::unique_ptr<Origin>> origin_of(const RemoteUri& uri) {
    if (uri.scheme == UriScheme::kHdfs) {
      return make_hdfs_origin(uri, process_variable("HADOOP_USER_NAME"));
    }
    if (uri.scheme != UriScheme::kS3) return make_http_origin(uri);
    SPEEDO_ASSIGN(const AwsSettings* const settings, aws_settings());
    return make_s3_origin(uri, *settings);
  }

  // Requires: the entry is locked.
  Result<void> bring_up_to_date(const FileCache& cache, const FileCache::Entry& entry,
                                const RemoteUri& uri) {
    const std::optional<CachedFile> copy = FileCache::find(entry);
    if (copy && !uri.sha256.empty() && copy->sha256 == uri.sha256) return {};
    SPEEDO_ASSIGN(const std::unique_ptr<Origin> origin, origin_of(uri));
    for (int changes = 0;; ++changes) {
      SPEEDO_ASSIGN(FileFacts facts, look_up(*origin, terms_, clients_));
      if (!uri.sha256.empty()) {
        facts.digests.push_back({DigestKind::kSha256, uri.sha256, "the URI"});
      }
      const bool is_current = copy && uri.sha256.empty() && !facts.version.empty() &&
                              copy->version == facts.version && copy->bytes == facts.bytes;
      if (is_current && changes == 0) return {};
      auto fetched = fetch_anew(cache, entry, *origin, facts);
      if (fetched) return fetched;
      if (fetched.error().code != ErrorCode::kMismatch) return fetched;
      if (changes + 1 >= terms_.changes_max) {
        return Error{ErrorCode::kUnavailable, fetched.error().message};
      }
      SPEEDO_INFO("{}; fetching it anew", fetched.error().message);
    }
  }

  // As long as its bytes count from the moment on in which there was room for them.
  Result<std::unique_ptr<PartialFile>> begin_file(const FileCache& cache,
                                                  const FileCache::Entry& entry,
                                                  const FileFacts& facts) {
    SPEEDO_ASSIGN(const std::unique_ptr<Descriptor> room,
                  cache.make_room(entry, facts.bytes, terms_.stopped));
    return PartialFile::open({entry.partial, entry.parts, entry.key}, facts,
                             part_bytes_of(facts, terms_));
  }

  // Error: kMismatch if the file is another one afterwards than before.
  Result<void> fetch_anew(const FileCache& cache, const FileCache::Entry& entry,
                          const Origin& origin, const FileFacts& facts) {
    const Instant start = steady_clock().now();
    SPEEDO_ASSIGN(const std::unique_ptr<PartialFile> file, begin_file(cache, entry, facts));
    const std::uint64_t had = file->parts().bytes_there();
    if (had > 0) {
      SPEEDO_INFO("'{}': {} of {} have come before", entry.shown,
                  format_bytes(static_cast<std::int64_t>(had)),
                  format_bytes(static_cast<std::int64_t>(facts.bytes)));
    }
    SPEEDO_TRY(transfer(origin, facts, terms_, clients_, *file));
    SPEEDO_TRY(check_version(origin, facts, *file));
    SPEEDO_ASSIGN(const CachedFile cached, check_digests(origin.uri(), facts, *file));
    SPEEDO_TRY(file->sync());
    SPEEDO_TRY(cache.keep(entry, *file, cached, terms_.stopped));
    SPEEDO_DEBUG("Fetched '{}': {} in {:.1f} s", entry.shown,
                 format_bytes(static_cast<std::int64_t>(facts.bytes - had)), seconds_since(start));
    return {};
  }

  // Parts of two versions make no file.
  Result<void> check_version(const Origin& origin, const FileFacts& facts,
                             const PartialFile& file) {
    if (facts.is_version_in_answers) return {};
    SPEEDO_ASSIGN(const FileFacts now, look_up(origin, terms_, clients_));
    if (now.version == facts.version && now.bytes == facts.bytes) return {};
    file.remove();
    return Error{ErrorCode::kMismatch,
                 fmt::format("'{}' changes while it is fetched", origin.uri().shown())};
  }

  static Result<CachedFile> check_digests(const RemoteUri& uri, const FileFacts& facts,
                                          const PartialFile& file) {
    CachedFile cached{.version = facts.version, .bytes = facts.bytes, .sha256 = {}};
    for (const PromisedDigest& promised : facts.digests) {
      auto found = digest_of_file(file.descriptor(), facts.bytes, promised.kind);
      if (!found) {
        return Error{found.error().code,
                     fmt::format("'{}' {}", uri.shown(), found.error().message)};
      }
      if (promised.kind == DigestKind::kSha256) cached.sha256 = *found;
      if (*found == promised.hex) continue;
      file.remove();
      return Error{
          ErrorCode::kCorrupt,
          fmt::format("'{}': the bytes that came have the {} {}, but {} promises {}: the "
                      "file was damaged or replaced; nothing of it is kept",
                      uri.shown(), name_of(promised.kind), *found, promised.from, promised.hex)};
    }
    return cached;
  }

  const std::filesystem::path folder_;
  const RemoteTerms terms_;
  ClientPool clients_;
  std::mutex mutex_;  // of what follows
  std::optional<FileCache> cache_;
  std::optional<AwsSettings> aws_;
  std::unordered_set<std::string> seen_;  // URIs whose copies are those of the servers
};

}  // namespace

std::unique_ptr<RemoteFiles> make_remote_file_cache(const std::filesystem::path& folder,
                                                    const RemoteTerms& terms) {
  return std::make_unique<RemoteFileCache>(folder, terms);
}

std::filesystem::path default_cache_folder() {
  const std::string cache = process_variable("XDG_CACHE_HOME"), home = process_variable("HOME");
  if (!cache.empty()) return std::filesystem::path(cache) / "speedo";
  if (!home.empty()) return std::filesystem::path(home) / ".cache" / "speedo";
  return {};
}

}  // namespace speedo
