#include "data/open_source.hpp"

#include <algorithm>
#include <initializer_list>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <speedo/base/file.hpp>
#include <speedo/base/folder.hpp>
#include <speedo/base/remote_files.hpp>

#include "base/input_roots.hpp"
#include "base/read_found.hpp"
#include "data/datum/datum_source.hpp"
#include "data/image/image_files.hpp"
#include "data/leveldb/leveldb_source.hpp"
#include "data/leveldb/remote_leveldb.hpp"

namespace speedo {

namespace {

using std::filesystem::path;

bool is_file(const path& name) {
  std::error_code code;
  return std::filesystem::is_regular_file(name, code);
}

std::vector<path> split_list(const std::string& name, const path& base) {
  std::vector<path> files;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t comma = std::min(name.find(',', begin), name.size());
    if (comma > begin) files.push_back(resolve_path(name.substr(begin, comma - begin), base));
    begin = comma + 1;
  }
  return files;
}

// CIFAR's training batches in a folder, by number. Its test batch is another set: name that file.
Result<std::vector<path>> training_batches(const path& folder) {
  SPEEDO_ASSIGN(std::vector<path> files, list_folder(folder));
  std::erase_if(files, [](const path& file) {
    return !file.filename().string().starts_with("data_batch_") || !looks_like_cifar(file);
  });
  return files;
}

// A prototxt that names another database than there is was written for other data.
Result<void> check_kind(const path& where, const SourceOptions& options, SourceKind kind,
                        const char* name) {
  if (!options.kind || options.kind == kind) return {};
  const char* const wanted = options.kind == SourceKind::kLmdb      ? "LMDB"
                             : options.kind == SourceKind::kLevelDb ? "LEVELDB"
                                                                    : "DATUMFILE";
  return Error{ErrorCode::kConfig,
               fmt::format("'{0}' holds a database of backend {1}, but is to be read as {2}{3}: "
                           "write 'backend: {1}' in the layer's data_param, or give the command "
                           "--backend {4}",
                           where.string(), name, wanted,
                           options.kind == SourceKind::kLevelDb ? ", Caffe's default" : "",
                           kind == SourceKind::kLmdb ? "lmdb" : "leveldb")};
}

// `base`: of the prototxt; empty: there is none.
Error no_source(const std::string& name, const path& base) {
  std::string message = fmt::format("data source '{}' does not exist", name);
  if (path(name).is_relative()) {
    std::error_code code;
    message += fmt::format("; its name is relative: looked for in '{}', where speedo was started",
                           std::filesystem::current_path(code).string());
    if (!base.empty()) message += fmt::format(", and in '{}', beside the prototxt", base.string());
  }
  return {ErrorCode::kNotFound, message + also_looked_in()};
}

Result<std::unique_ptr<DataSource>> open_folder(const path& where, const SourceOptions& options) {
  if (is_file(where / "data.mdb")) {
    SPEEDO_TRY(check_kind(where, options, SourceKind::kLmdb, "LMDB"));
    return DatumSource::open_lmdb(where, options.color);
  }
  if (is_file(where / "CURRENT")) {
    SPEEDO_TRY(check_kind(where, options, SourceKind::kLevelDb, "LEVELDB"));
    return LeveldbSource::open(where, options.color);
  }
  SPEEDO_ASSIGN(const std::vector<path> files, training_batches(where));
  if (!files.empty()) return open_cifar(files);
  return Error{
      ErrorCode::kData,
      fmt::format("'{}' is a folder, but holds neither data.mdb (LMDB), CURRENT (LevelDB) nor "
                  "data_batch_*.bin (CIFAR-10)",
                  where.string())};
}

Result<std::unique_ptr<DataSource>> open_file(const path& where, const SourceOptions& options) {
  if (looks_like_idx_images(where)) return open_idx(where, idx_labels_beside(where));
  if (looks_like_cifar(where)) return open_cifar({where});
  if (where.extension() == ".mdb" || options.kind == SourceKind::kLmdb) {
    return DatumSource::open_lmdb(where, options.color);
  }
  if (options.kind == SourceKind::kLevelDb) {
    return Error{ErrorCode::kData,
                 fmt::format("'{}' is a file, but a LevelDB database is a folder", where.string())};
  }
  if (where.filename().string().find("-ubyte") != std::string::npos) {
    return open_idx(where, idx_labels_beside(where));
  }
  if (where.extension() == ".bin" && !options.kind) return open_cifar({where});
  return DatumSource::open_datumfile(where, options.color);
}

bool is_archive(const std::string& name) {
  return std::ranges::any_of(std::initializer_list<const char*>{".tar", ".tgz", ".tar.gz", ".zip"},
                             [&](const char* ending) { return name.ends_with(ending); });
}

std::string in_uri_folder(const std::string& folder, const std::string& name) {
  return folder + (folder.ends_with('/') ? "" : "/") + name;
}

// Whether the URI may be that of a folder with an LMDB: a file is only asked for if there is none.
bool may_be_lmdb_folder(const std::string& uri, const SourceOptions& options) {
  const bool other_kind = options.kind && options.kind != SourceKind::kLmdb;
  const bool is_file_name = uri.ends_with(".mdb") || uri.ends_with(".bin") ||
                            uri.ends_with(".gz") || uri.find("-ubyte") != std::string::npos;
  return !other_kind && !is_file_name && uri.find_first_of("?#") == std::string::npos;
}

Result<std::unique_ptr<DataSource>> open_remote_file(const std::string& uri,
                                                     const SourceOptions& options) {
  SPEEDO_ASSIGN(const path where, find_file(uri, {}));
  if (!looks_like_idx_images(where)) return open_file(where, options);
  SPEEDO_ASSIGN(const path labels, find_idx_labels(uri));
  return open_idx(where, labels);
}

// Files are known by what is in them, as local ones are; a folder by the file that it must have.
Result<std::unique_ptr<DataSource>> open_remote(const std::string& uri,
                                                const SourceOptions& options) {
  if (is_archive(uri)) {
    return Error{ErrorCode::kUnsupported,
                 "a data source at a URI is an archive: unpack it on the server, and name the "
                 "folder of the LMDB or LevelDB, or the file"};
  }
  const std::vector<path> parts = split_list(uri, {});
  const auto is_batch = [](const path& part) {
    return is_uri(part.string()) && part.extension() == ".bin";
  };
  if (parts.size() > 1 && std::ranges::all_of(parts, is_batch)) {
    std::vector<path> files;
    for (const path& part : parts) {
      SPEEDO_ASSIGN(path file, find_file(part.string(), {}));
      files.push_back(std::move(file));
    }
    return open_cifar(files);
  }
  if (options.kind == SourceKind::kLevelDb) {
    SPEEDO_ASSIGN(const path folder, fetch_leveldb(uri));
    return LeveldbSource::open(folder, options.color);
  }
  if (!may_be_lmdb_folder(uri, options)) return open_remote_file(uri, options);
  const auto file = find_file(in_uri_folder(uri, "data.mdb"), {});
  if (file) return DatumSource::open_lmdb(*file, options.color);
  const bool is_no_folder =
      may_be_missing(file.error()) && options.kind != SourceKind::kLmdb && !uri.ends_with('/');
  if (!is_no_folder) return file.error();
  return open_remote_file(uri, options);
}

}  // namespace

Result<path> find_idx_labels(const std::string& images) {
  if (!is_uri(images)) return idx_labels_beside(images);
  return find_file(uri_beside(images, "") + idx_labels_beside(images).filename().string(), {});
}

std::optional<SourceKind> source_kind_named(const std::string& backend) {
  if (backend == "lmdb") return SourceKind::kLmdb;
  if (backend == "leveldb") return SourceKind::kLevelDb;
  if (backend == "datumfile") return SourceKind::kDatumfile;
  return std::nullopt;
}

Result<std::unique_ptr<DataSource>> open_source(const std::string& name,
                                                const SourceOptions& options) {
  const std::string resolved = resolve_name(name, options.base);
  if (is_uri(resolved)) {
    auto source = open_remote(resolved, options);
    if (!source) return from_uri(std::move(source).error(), resolved);
    return source;
  }
  const path where = resolved;
  SPEEDO_TRY(check_input(where));
  std::error_code code;
  if (std::filesystem::is_directory(where, code)) return open_folder(where, options);
  if (is_file(where)) return open_file(where, options);
  if (std::filesystem::exists(where, code)) {
    return Error{ErrorCode::kData, fmt::format("'{}' is neither a file nor a folder", name)};
  }
  if (code == std::errc::permission_denied) {
    return Error{ErrorCode::kRefused,
                 fmt::format("data source '{}' may not be looked for: permission denied", name)};
  }
  if (name.find(',') != std::string::npos) return open_cifar(split_list(name, options.base));
  return no_source(name, options.base);
}

}  // namespace speedo
