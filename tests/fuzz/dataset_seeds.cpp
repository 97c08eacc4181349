// Data sets of all formats, with a few small images.
#include <cstring>

#include <speedo/base/assert.hpp>
#include <speedo/base/file.hpp>
#include <speedo/base/folder.hpp>

#include "caffe.pb.h"
#include "data/convert.hpp"
#include "data/datum/datum.hpp"
#include "data/image/image_encoder.hpp"
#include "data/memory_source.hpp"
#include "fuzz/leveldb_files.hpp"
#include "fuzz/seeds.hpp"
#include "support/temp_dir.hpp"

namespace speedo::fuzz {
namespace {

std::string source_file(const std::string& name) {
  return read_file(std::string(SPEEDO_SOURCE_DIR) + "/tests/golden/data/" + name).value();
}

Record small_record(std::int64_t channels, std::int64_t side, std::int64_t label) {
  Record record;
  record.channels = channels;
  record.height = record.width = side;
  record.label = label;
  for (std::int64_t i = 0; i < record.count(); ++i) {
    record.bytes.push_back(static_cast<std::uint8_t>((label * 31 + i * 7) % 251));
  }
  return record;
}

std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += byte_text(value >> (8 * i) & 0xFFU);
  return text;
}

std::string bmp() {
  return "BM" + little(0, 8) + little(54, 4) + little(40, 4) + little(3, 4) + little(2, 4) +
         little(1, 2) + little(24, 2) + std::string(24, '\0') + std::string(24, '\x55');
}

// Of one strip, as it is: TIFF 6.0, little-endian.
std::string tiff() {
  const std::uint32_t entries[][3] = {{256, 3, 3}, {257, 3, 2}, {258, 3, 8}, {259, 3, 1},
                                      {262, 3, 1}, {273, 4, 8}, {277, 3, 1}, {278, 3, 2},
                                      {279, 4, 6}};
  std::string file = "II*" + little(0, 1) + little(14, 4) + "pixels" + little(9, 2);
  for (const auto& [tag, type, value] : entries) {
    file += little(tag, 2) + little(type, 2) + little(1, 4) + little(value, 4);
  }
  return file + little(0, 4);
}

// A lossless WebP of one pixel.
std::string webp() {
  return std::string("RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe"
                     "\x07\0",
                     34);
}

// Of animations we read none.
std::string animated_webp() {
  return "RIFF" + little(22, 4) + "WEBPVP8X" + little(10, 4) + little(2, 4) + little(0, 3) +
         little(0, 3);
}

// The JPEG with a marker that says how its picture is to be turned.
std::string with_orientation(const std::string& jpeg, unsigned orientation, bool is_big) {
  std::string tiff = "II*" + little(0, 1) + little(8, 4) + little(1, 2) + little(0x112, 2) +
                     little(3, 2) + little(1, 4) + little(orientation, 4) + little(0, 4);
  if (is_big) {
    tiff = std::string("MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0", 19) +
           byte_text(orientation) + std::string(6, '\0');
  }
  const std::string content = std::string("Exif\0\0", 6) + tiff;
  const auto bytes = static_cast<unsigned>(content.size() + 2);
  return jpeg.substr(0, 2) + "\xFF\xE1" + byte_text(bytes >> 8U) + byte_text(bytes & 0xFFU) +
         content + jpeg.substr(2);
}

std::vector<std::string> images() {
  std::vector<std::string> all = {bmp(), tiff(), webp(), "P6 2 1 255\nabcdef",
                                  "P3 # text\n1 1\n255\n10 20 30\n", "P5 2 1 65535\nabcd",
                                  "P1 3 1\n101", "P4 10 1\nab"};
  for (const std::int64_t channels : {1, 3}) {
    for (const char* encoding : {"png", "jpg"}) {
      all.push_back(encode_image(small_record(channels, 9, 1), encoding).value());
    }
  }
  const std::string jpeg = all.back();
  for (unsigned orientation = 0; orientation < 9; ++orientation) {
    all.push_back(with_orientation(jpeg, orientation, orientation % 2 == 1));
  }
  all.push_back(animated_webp());
  all.push_back(webp().substr(0, 20));
  return all;
}

void add_images(std::vector<Seed>& seeds) {
  for (const std::string& image : images()) {
    for (const unsigned color : {0, 1, 2}) seeds.push_back({"image", byte_text(color) + image});
    caffe::Datum datum;
    datum.set_encoded(true);
    datum.set_data(image);
    seeds.push_back({"datum", byte_text(0) + datum.SerializeAsString()});
  }
  caffe::Datum datum;
  std::string bytes;
  encode_datum(small_record(2, 3, 5), datum, bytes);
  seeds.push_back({"datum", byte_text(0) + bytes});
  Record floats;
  floats.channels = floats.height = 1;
  floats.width = 3;
  floats.floats = {1.0F, 0.5F, -2.0F};
  encode_datum(floats, datum, bytes);
  seeds.push_back({"datum", byte_text(0) + bytes});
}

std::string converted(RecordFormat format, const TempDir& folder, std::int64_t count,
                      std::int64_t side) {
  std::vector<Record> records;
  for (std::int64_t i = 0; i < count; ++i) records.push_back(small_record(1, side, i));
  MemorySource source(std::move(records));
  SPEEDO_ASSERT(convert(source, {.output = folder / "d", .format = format}));
  return folder / "d";
}

void add_databases(std::vector<Seed>& seeds) {
  for (const auto& [count, side] : {std::pair(3, 3), std::pair(2, 70), std::pair(90, 6)}) {
    const TempDir folder;
    const std::string path = converted(RecordFormat::kLmdb, folder, count, side);
    seeds.push_back({"lmdb", read_file(path + "/data.mdb").value()});
  }
  seeds.push_back({"lmdb", source_file("datasets/float_lmdb/data.mdb")});
  const TempDir folder;
  seeds.push_back(
      {"datumfile", read_file(converted(RecordFormat::kDatumfile, folder, 3, 3)).value()});
}

// An entry that shares nothing with the one before.
std::string table_entry(const std::string& key, const std::string& value) {
  return byte_text(0) + byte_text(static_cast<unsigned>(key.size())) +
         byte_text(static_cast<unsigned>(value.size())) + key + value;
}

std::string table_block(const std::string& entries) {
  return entries + little(0, 4) + little(1, 4);
}

std::string varint(std::size_t value) {
  std::string text;
  for (; value >= 0x80U; value >>= 7U) text += byte_text((value & 0x7FU) | 0x80U);
  return text + byte_text(static_cast<unsigned>(value));
}

// Blocks of one entry, so large that only their beginnings are looked at, as they are and as
// Snappy writes what it cannot pack; the last one's value is shorter than the block.
void add_large_blocks(std::vector<Seed>& seeds) {
  constexpr std::size_t kValueBytes = 9000;
  const std::string value(kValueBytes, 'v');
  for (const std::size_t said : {kValueBytes, kValueBytes - 1}) {
    const std::string block =
        table_block(byte_text(0) + byte_text(3) + varint(said) + "key" + value);
    const auto bytes = static_cast<std::uint32_t>(block.size());
    const std::string packed = varint(bytes) + "\xf4" + little(bytes - 1, 2) + block;
    seeds.push_back({"leveldb", byte_text(0) + block});
    seeds.push_back({"leveldb", byte_text(1) + packed});
  }
  seeds.push_back({"leveldb", byte_text(1) + std::string(kValueBytes, '\xff')});
  seeds.push_back({"leveldb", byte_text(1) + varint(kValueBytes) + "\xfe" + value});
}

// Places are two numbers of one byte each: blocks of the small table are shorter than 128 bytes.
std::string place(std::size_t offset, std::size_t bytes) {
  return byte_text(static_cast<unsigned>(offset)) + byte_text(static_cast<unsigned>(bytes));
}

std::string small_table(const std::string& datum) {
  const std::string stamp = byte_text(1) + byte_text(1) + std::string(6, '\0');
  const std::string data = table_block(table_entry("00000000" + stamp, datum));
  std::string table = block_with_trailer(data, 0);
  const std::size_t index_at = table.size();
  const std::string index = table_block(table_entry("1" + stamp, place(0, data.size())));
  table += block_with_trailer(index, 0);
  std::string footer = place(0, 0) + place(index_at, index.size());
  footer.resize(40, '\0');
  const std::uint64_t magic = 0xDB4775248B80FB57U;
  return table + footer + std::string(reinterpret_cast<const char*>(&magic), sizeof magic);
}

// An edit that adds table 5, and says where the log begins, as one fragment.
std::string small_manifest(std::size_t table_bytes) {
  const auto bytes = static_cast<unsigned>(table_bytes);
  const std::string edit = byte_text(2) + byte_text(3) + byte_text(7) + byte_text(0) +
                           byte_text(5) + byte_text((bytes & 0x7FU) | 0x80U) +
                           byte_text(bytes >> 7U) + byte_text(1) + "0" + byte_text(1) + "1";
  return little(0, 4) + little(static_cast<std::uint32_t>(edit.size()), 2) + byte_text(1) + edit;
}

void add_leveldb(std::vector<Seed>& seeds) {
  const TempDir folder;
  const std::string path = converted(RecordFormat::kLevelDb, folder, 3, 3);
  std::string manifest, log;
  const auto files = list_folder(path);
  SPEEDO_ASSERT(files);
  for (const auto& file : *files) {
    if (file.filename().string().starts_with("MANIFEST-")) manifest = read_file(file).value();
    if (file.extension() == ".log") log = read_file(file).value();
  }
  seeds.push_back({"leveldb", byte_text(2) + piece_text(manifest) + piece_text(log)});
  caffe::Datum datum;
  std::string bytes;
  encode_datum(small_record(1, 2, 1), datum, bytes);
  const std::string table = small_table(bytes);
  seeds.push_back({"leveldb", byte_text(3) + piece_text(small_manifest(table.size())) +
                                  piece_text("") + table});
  seeds.push_back({"leveldb", byte_text(0) + table_block(table_entry("key", "value"))});
  // "abcdabcdabcd..." by Snappy: a literal and a copy.
  seeds.push_back({"leveldb", byte_text(1) + "\x14\x0c" + "abcd" + "\x3e\x04" + byte_text(0)});
}

void add_image_files(std::vector<Seed>& seeds) {
  const std::string images = std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03", 16) +
                             "abcdefghijkl";
  const std::string labels = std::string("\0\0\x08\x01\0\0\0\x02", 8) + "\x01\x02";
  seeds.push_back({"image_files", byte_text(0) + piece_text(images) + labels});
  const std::string cifar = byte_text(3) + std::string(3072, 'c');
  seeds.push_back({"image_files", byte_text(1) + piece_text(cifar) + cifar});
  // `labels` as gzip stores it without packing.
  const std::string stored = std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03\x01\x0a\0\xf5\xff", 15) +
                             labels + little(0x0b7e9a5a, 4) + little(10, 4);
  seeds.push_back({"image_files", byte_text(0) + piece_text(images) + stored});
  seeds.push_back({"image_files", byte_text(0) + piece_text(images) + stored.substr(0, 20)});
  seeds.push_back({"image_files", byte_text(0) + piece_text(stored) + labels});
}

}  // namespace

std::vector<Seed> dataset_seeds() {
  std::vector<Seed> seeds;
  add_images(seeds);
  add_databases(seeds);
  add_leveldb(seeds);
  add_large_blocks(seeds);
  add_image_files(seeds);
  seeds.push_back({"csv", byte_text(0) + "1,2,3,4,0\n5,6,7,8,1\n"});
  seeds.push_back({"csv", byte_text(2 + 1 + 4) + "label,a,b\n0,0.5,1e-3\n1,-2,3\n"});
  seeds.push_back({"csv", byte_text(8 + 16 + 32) + "0.1;0.2;0.3;0.4;7\r\n"});
  for (const char* name : {"datasets/h5_a.h5", "cli/train.h5"}) {
    seeds.push_back({"hdf5", source_file(name)});
  }
  return seeds;
}

}  // namespace speedo::fuzz
