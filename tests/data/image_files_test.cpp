#include <zlib.h>

#include "data/image/image_files.hpp"
#include "data/open_source.hpp"
#include "data_support.hpp"

namespace speedo {
namespace {

// Four images of 2 x 3 pixels 0, 1, 2, ... and the labels 7, 8, 9, 10.
std::string idx_images() {
  std::string text = big32_text(0x803) + big32_text(4) + big32_text(2) + big32_text(3);
  for (int i = 0; i < 24; ++i) text.push_back(static_cast<char>(i));
  return text;
}
std::string idx_labels() { return big32_text(0x801) + big32_text(4) + "\x07\x08\x09\x0a"; }

struct IdxPair {
  explicit IdxPair(const TempDir& folder)
      : images(folder / "train-images-idx3-ubyte"), labels(folder / "train-labels-idx1-ubyte") {
    write_bytes(images, idx_images());
    write_bytes(labels, idx_labels());
  }
  auto open() const { return open_idx(images, labels); }
  std::filesystem::path images, labels;
};

void check_third_image(DataSource& source) {
  REQUIRE(source.size() == 4);
  Record record;
  REQUIRE(source.read(2, record));
  CHECK(record.label == 9);
  CHECK(record.channels == 1);
  CHECK(record.height == 2);
  CHECK(record.width == 3);
  CHECK(record.bytes == std::vector<std::uint8_t>{12, 13, 14, 15, 16, 17});
}

TEST_CASE("an idx pair is opened by the name of its images, whatever the backend says") {
  const TempDir folder;
  const IdxPair pair(folder);
  CHECK(idx_labels_beside(pair.images) == pair.labels);
  CHECK(idx_labels_beside("a/t10k-images.idx3-ubyte") == "a/t10k-labels.idx1-ubyte");
  for (const auto kind : {SourceKind::kLmdb, SourceKind::kLevelDb, SourceKind::kDatumfile}) {
    const auto source = open_source(pair.images.string(), {.kind = kind});
    REQUIRE(source);
    check_third_image(**source);
  }
}

TEST_CASE("a gzip-compressed idx pair is read as it is; a damaged one is an error") {
  const TempDir folder;
  const auto pack = [](const std::filesystem::path& path, const std::string& bytes) {
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
  };
  const auto images = folder / "train-images-idx3-ubyte.gz";
  pack(images, idx_images());
  pack(folder / "train-labels-idx1-ubyte.gz", idx_labels());
  const auto source = open_source(images.string(), {});
  REQUIRE(source);
  check_third_image(**source);
  const std::string packed = read_bytes(images);
  write_bytes(images, packed.substr(0, packed.size() - 10));
  check_error(open_source(images.string(), {}), ErrorCode::kData, "train-images");
}

TEST_CASE("idx files cut at any byte are refused") {
  const TempDir folder;
  const IdxPair pair(folder);
  for (std::size_t cut = 0; cut < idx_images().size(); ++cut) {
    write_bytes(pair.images, idx_images().substr(0, cut));
    check_error(pair.open(), ErrorCode::kData, "train-images");
    check_error(open_source(pair.images.string(), {.kind = SourceKind::kLmdb}), ErrorCode::kData,
                "train-images");
  }
  write_bytes(pair.images, idx_images());
  for (std::size_t cut = 0; cut < idx_labels().size(); ++cut) {
    write_bytes(pair.labels, idx_labels().substr(0, cut));
    check_error(pair.open(), ErrorCode::kData, "train-labels");
  }
  write_bytes(pair.labels, idx_labels());
  CHECK(pair.open());
}

TEST_CASE("idx files that contradict themselves or each other are refused") {
  const TempDir folder;
  const IdxPair pair(folder);
  const auto with_header = [](std::uint32_t count, std::uint32_t rows, std::uint32_t columns) {
    return big32_text(0x803) + big32_text(count) + big32_text(rows) + big32_text(columns);
  };
  write_bytes(pair.images, with_header(0, 2, 3));
  check_error(pair.open(), ErrorCode::kData, "no images");
  write_bytes(pair.images, with_header(4, 0, 3));
  check_error(pair.open(), ErrorCode::kData, "impossible images");
  write_bytes(pair.images, with_header(0xffffffff, 0xffffffff, 0xffffffff));
  check_error(pair.open(), ErrorCode::kData, "impossible images");
  write_bytes(pair.images, with_header(0xffffffff, 40000, 40000));
  check_error(pair.open(), ErrorCode::kData, "need");
  write_bytes(pair.images, idx_images() + "x");
  check_error(pair.open(), ErrorCode::kData, "need 40 bytes, but has 41");
  write_bytes(pair.images, idx_labels() + std::string(20, 'x'));
  check_error(pair.open(), ErrorCode::kData, "begins with 0x00000801");
  write_bytes(pair.images, idx_images());
  write_bytes(pair.labels, big32_text(0x801) + big32_text(3) + "abc");
  check_error(pair.open(), ErrorCode::kData, "3 labels, but there are 4 images");
  std::filesystem::remove(pair.labels);
  check_error(pair.open(), ErrorCode::kNotFound, "train-labels-idx1-ubyte");
}

std::string cifar_record(int label, int shade) {
  return std::string(1, static_cast<char>(label)) + std::string(3072, static_cast<char>(shade));
}

TEST_CASE("CIFAR binaries: one file, a list, a folder of training batches") {
  const TempDir folder;
  write_bytes(folder / "data_batch_1.bin", cifar_record(1, 10) + cifar_record(2, 20));
  write_bytes(folder / "data_batch_2.bin", cifar_record(3, 30));
  write_bytes(folder / "test_batch.bin", cifar_record(9, 90));
  Record record;
  const auto one = open_source((folder / "test_batch.bin").string(), {.kind = SourceKind::kLmdb});
  REQUIRE(one);
  REQUIRE((*one)->size() == 1);
  const auto all = open_source(folder.path().string(), {});
  REQUIRE(all);
  REQUIRE((*all)->size() == 3);
  REQUIRE((*all)->read(2, record));
  CHECK(record.label == 3);
  CHECK(record.bytes == std::vector<std::uint8_t>(3072, 30));
  const auto list = open_source(
      (folder / "test_batch.bin").string() + "," + (folder / "data_batch_1.bin").string(), {});
  REQUIRE(list);
  REQUIRE((*list)->size() == 3);
  REQUIRE((*list)->read(0, record));
  CHECK(record.label == 9);
  REQUIRE((*list)->read(2, record));
  CHECK(record.label == 2);
  CHECK(record.channels == 3);
  CHECK(record.height == 32);
}

TEST_CASE("CIFAR binaries of a wrong size or with a wrong label are refused") {
  const TempDir folder;
  write_bytes(folder / "a.bin", cifar_record(1, 1) + "x");
  check_error(open_cifar({folder / "a.bin"}), ErrorCode::kData, "whole number of CIFAR-10 records");
  check_error(open_source((folder / "a.bin").string(), {}), ErrorCode::kData, "a.bin");
  write_bytes(folder / "b.bin", "");
  check_error(open_cifar({folder / "b.bin"}), ErrorCode::kData, "0 bytes");
  check_error(open_cifar({folder / "c.bin"}), ErrorCode::kNotFound, "c.bin");
  write_bytes(folder / "d.bin", cifar_record(10, 1));
  const auto source = open_cifar({folder / "d.bin"});
  REQUIRE(source);
  Record record;
  check_error((*source)->read(0, record), ErrorCode::kData, "label 10");
}

TEST_CASE("a source that cannot be told or read is a named error") {
  const TempDir folder;
  const std::string none = (folder / "none").string();
  CHECK(open_source(none, {}).error().message == "data source '" + none + "' does not exist");
  const std::string here = std::filesystem::current_path().string();
  CHECK(open_source("none", {}).error().message ==
        "data source 'none' does not exist; its name is relative: looked for in '" + here +
            "', where speedo was started");
  check_error(open_source("none", {.base = folder.path()}), ErrorCode::kNotFound,
              ", and in '" + folder.path().string() + "', beside the prototxt");
  check_error(open_source(folder.path().string(), {}), ErrorCode::kData, "neither data.mdb");
  std::filesystem::create_directory(folder / "ldb");
  write_bytes(folder / "ldb" / "CURRENT", "MANIFEST-000001\n");
  check_error(open_source((folder / "ldb").string(), {}), ErrorCode::kNotFound,
              "MANIFEST-000001");
  write_numbered(folder / "lmdb", RecordFormat::kLmdb, 3);
  check_error(open_source((folder / "lmdb").string(), {.kind = SourceKind::kDatumfile}),
              ErrorCode::kConfig,
              "lmdb' holds a database of backend LMDB, but is to be read as DATUMFILE: write "
              "'backend: LMDB' in the layer's data_param, or give the command --backend lmdb");
  check_error(open_source((folder / "lmdb").string(), {.kind = SourceKind::kLevelDb}),
              ErrorCode::kConfig, "read as LEVELDB, Caffe's default: write 'backend: LMDB'");
  check_error(open_source("/dev/null", {}), ErrorCode::kData, "neither a file nor a folder");
  // A relative name is found beside the prototxt too.
  const auto found = open_source("lmdb", {.base = folder.path()});
  REQUIRE(found);
  CHECK((*found)->size() == 3);
}

}  // namespace
}  // namespace speedo
