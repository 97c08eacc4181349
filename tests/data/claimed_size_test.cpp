// Small files that announce gigabytes, and files that shrink as far as their format can.

#include "data/claimed_size.hpp"

#include <algorithm>
#include <climits>
#include <functional>

#include <hdf5.h>
#include <png.h>
#include <zlib.h>

#include "base/memory_limit.hpp"
#include "data/image/encoded_image.hpp"
#include "data/hdf5/hdf5_batch_reader.hpp"
#include "data/hdf5/hdf5_file.hpp"
#include "data/image/image_files.hpp"
#include "data/model_files.hpp"
#include "data/random_file.hpp"
#include "data_support.hpp"
#include "jpeg_support.hpp"
#include "png_support.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMib = 1024 * 1024;

TEST_CASE("A claim is compared with what the bytes can hold and with the memory") {
  const MemoryLimit memory{100 * kMib, "the limit of its cgroup"};
  CHECK(check_claim("x", {kHarmlessBytes, 0}));
  CHECK(check_claim("x", {50 * kMib, 50 * kMib}));
  CHECK(check_claim("x", {std::uint64_t{1} << 50U, std::uint64_t{1} << 50U}));
  CHECK(check_memory("x", 100 * kMib, memory));
  check_error(check_claim("'a.h5'", {50 * kMib, 20 * kMib}), ErrorCode::kData,
              "'a.h5' announces 50 MiB, but the bytes that are there can hold 20 MiB at most");
  check_error(check_memory("'a.h5'", 200 * kMib, memory), ErrorCode::kData,
              "takes 200 MiB of memory, but the limit of its cgroup is 100 MiB");
  check_error(check_claim("x", {UINT64_MAX, UINT64_MAX - 1}), ErrorCode::kData, "announces");
  CHECK(saturating_product(1U << 31U, 1ULL << 40U) == UINT64_MAX);
  CHECK(saturating_product(3, 5) == 15);
}

// What a dataset of the library is made of.
struct Dataset {
  std::string path = {};
  hid_t type = H5T_IEEE_F32LE;
  std::vector<hsize_t> dims = {}, chunk = {};
  int deflate = -1;     // level; -1: not compressed
  int times = 1;        // that deflate is applied, one after the other
  bool write = false;   // zeros, in one piece
  bool sparse = false;  // has its place in the file, but no blocks of the disk
};

// A file written with the library alone; `more` may add to it.
void write_hdf5(const fs::path& path, const std::vector<Dataset>& datasets,
                const std::function<void(hid_t)>& more = {}) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  REQUIRE(file >= 0);
  const hid_t parents = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(parents, 1);
  for (const Dataset& each : datasets) {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const int rank = static_cast<int>(each.dims.size());
    if (!each.chunk.empty()) H5Pset_chunk(creation, rank, each.chunk.data());
    for (int i = 0; each.deflate >= 0 && i < each.times; ++i) {
      H5Pset_deflate(creation, static_cast<unsigned>(each.deflate));
    }
    if (each.sparse) {
      H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
      H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
    }
    const hid_t space = H5Screate_simple(rank, each.dims.data(), nullptr);
    const hid_t data =
        H5Dcreate2(file, each.path.c_str(), each.type, space, parents, creation, H5P_DEFAULT);
    REQUIRE(data >= 0);
    if (each.write) {
      std::size_t bytes = H5Tget_size(each.type);
      for (const hsize_t dim : each.dims) bytes *= dim;
      const std::vector<char> zeros(bytes);
      REQUIRE(H5Dwrite(data, each.type, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros.data()) >= 0);
    }
    H5Dclose(data);
    H5Sclose(space);
    H5Pclose(creation);
  }
  if (more) more(file);
  H5Pclose(parents);
  REQUIRE(H5Fclose(file) >= 0);
}

TEST_CASE("HDF5: a model that announces gigabytes is refused, whatever its layout") {
  const TempDir folder;
  const fs::path path = folder / "m.h5";
  const hsize_t many = 2147483647;
  for (const Dataset& data :
       {Dataset{.path = "/data/ip/0", .dims = {many}},
        Dataset{.path = "/data/ip/0", .dims = {many}, .chunk = {65536}},
        Dataset{.path = "/data/ip/0", .dims = {many}, .chunk = {65536}, .deflate = 9},
        Dataset{.path = "/data/ip/0", .type = H5T_STD_I8LE, .dims = {46340, 46340}},
        Dataset{.path = "/data/ip/0", .dims = {10}, .chunk = {10}, .deflate = 9, .write = true},
        Dataset{.path = "/data/ip/0", .dims = {4}}}) {
    write_hdf5(path, {data});
    REQUIRE(fs::file_size(path) < 10000);
    const auto model = read_model(path);
    if (data.dims[0] < 100) {
      CHECK(model);
    } else {
      check_error(model, ErrorCode::kData, "m.h5' (");
      check_error(model, ErrorCode::kData, "'/data/ip/0' announces");
    }
  }
}

// Zeros in the first `count` places of a dataset along one axis.
void write_zeros(hid_t file, const std::string& dataset, hsize_t count) {
  const hid_t data = H5Dopen2(file, dataset.c_str(), H5P_DEFAULT);
  const hid_t from = H5Screate_simple(1, &count, nullptr), to = H5Dget_space(data);
  const hsize_t first = 0;
  H5Sselect_hyperslab(to, H5S_SELECT_SET, &first, nullptr, &count, nullptr);
  const std::vector<float> zeros(count);
  REQUIRE(H5Dwrite(data, H5T_NATIVE_FLOAT, from, to, H5P_DEFAULT, zeros.data()) >= 0);
  H5Sclose(to);
  H5Sclose(from);
  H5Dclose(data);
}

TEST_CASE("HDF5: filters one behind the other hold no more than the best of them") {
  const TempDir folder;
  const fs::path path = folder / "m.h5";
  const hsize_t chunk = 65536;
  const auto stacked = [&](hsize_t values) {
    write_hdf5(
        path,
        {{.path = "/data/ip/0", .dims = {values}, .chunk = {chunk}, .deflate = 9, .times = 3}},
        [&](hid_t file) { write_zeros(file, "/data/ip/0", chunk); });
    REQUIRE(fs::file_size(path) < 10000);
    return read_model(path);
  };
  CHECK(stacked(chunk));
  check_error(stacked(2147483647), ErrorCode::kData, "'/data/ip/0' announces");
}

TEST_CASE("HDF5: values that lie in other files are not read") {
  const TempDir folder;
  const fs::path path = folder / "m.h5";
  write_hdf5(folder / "source.h5", {{.path = "/d", .dims = {4}, .write = true}});
  write_bytes(folder / "raw", std::string(16, 'x'));
  const bool is_virtual = GENERATE(true, false);
  write_hdf5(path, {}, [&](hid_t file) {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t count = 4;
    const hid_t space = H5Screate_simple(1, &count, nullptr);
    if (is_virtual) {
      H5Pset_virtual(creation, space, (folder / "source.h5").c_str(), "/d", space);
    } else {
      H5Pset_external(creation, (folder / "raw").c_str(), 0, 16);
    }
    const hid_t parents = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(parents, 1);
    for (const char* name : {"/data/ip/0", "/iter"}) {
      const hid_t data =
          H5Dcreate2(file, name, H5T_IEEE_F32LE, space, parents, creation, H5P_DEFAULT);
      REQUIRE(data >= 0);
      H5Dclose(data);
    }
    H5Pclose(parents);
    H5Sclose(space);
    H5Pclose(creation);
  });
  check_error(read_model(path), ErrorCode::kData, "in other files");
  const auto file = Hdf5Reader::open(path);
  REQUIRE(file);
  check_error(file->read_floats("/iter"), ErrorCode::kData, "in other files");
}

TEST_CASE("HDF5: rows that were announced and never written are not shuffled") {
  const TempDir folder;
  write_bytes(folder / "list", (folder / "d.h5").string() + "\n");
  Hdf5BatchReader::Options options;
  options.list = folder / "list";
  options.datasets = {"data", "label"};
  options.shuffle = true;
  const hsize_t many = hsize_t{1} << 33U;
  write_hdf5(folder / "d.h5",
             {{.path = "data", .type = H5T_STD_I8LE, .dims = {many, 1}, .chunk = {4096, 1}},
              {.path = "label", .type = H5T_STD_I8LE, .dims = {many, 1}, .chunk = {4096, 1}}});
  check_error(Hdf5BatchReader::create(options), ErrorCode::kData, "d.h5");
  // A few labels that stay at their fill value are a legitimate file.
  write_hdf5(folder / "d.h5", {{.path = "data", .dims = {1000, 4}, .write = true},
                               {.path = "label", .dims = {1000}}});
  CHECK(Hdf5BatchReader::create(options));
}

TEST_CASE("HDF5: data larger than the memory are read by rows") {
  const TempDir folder;
  write_bytes(folder / "list", (folder / "d.h5").string() + "\n");
  const hsize_t rows = hsize_t{1} << 18U, row = hsize_t{1} << 20U;  // a tebibyte of floats
  write_hdf5(folder / "d.h5", {{.path = "data", .dims = {rows, row}, .sparse = true}});
  Hdf5BatchReader::Options options;
  options.list = folder / "list";
  options.datasets = {"data"};
  options.shuffle = true;
  const auto reader = Hdf5BatchReader::create(options);
  REQUIRE(reader);
  CHECK((*reader)->record_count() == rows);
  BatchTops tops;
  REQUIRE(tops.fit((*reader)->shapes()));
  std::ranges::fill(tops[0], 1.0F);
  REQUIRE((*reader)->read(7, 0, tops));
  CHECK(std::ranges::count(tops[0], 0.0F) == static_cast<std::ptrdiff_t>(row));
  check_error(read_model(folder / "d.h5"), ErrorCode::kData, "d.h5");
}

TEST_CASE("HDF5: data that compress as far as deflate can are read") {
  const TempDir folder;
  const hsize_t values = hsize_t{6} << 20U;
  for (const hsize_t chunk : {hsize_t{65536}, hsize_t{1} << 20U, values}) {
    write_hdf5(folder / "d.h5",
               {{.path = "d", .dims = {values}, .chunk = {chunk}, .deflate = 9, .write = true}});
    REQUIRE(fs::file_size(folder / "d.h5") * 500 < values * sizeof(float));
    const auto file = Hdf5Reader::open(folder / "d.h5");
    REQUIRE(file);
    CHECK(file->read_floats("d").value() == std::vector<float>(values));
  }
}

TEST_CASE("HDF5: a chunk of gigabytes for a few values is refused") {
  const TempDir folder;
  write_hdf5(folder / "d.h5", {{.path = "d", .dims = {10}, .chunk = {10}, .write = true}});
  std::string bytes = read_bytes(folder / "d.h5");
  // The layout message: version 3, chunked (2), two dimensions, B-tree address, 10, element size 4.
  const std::size_t at = bytes.find(std::string("\x03\x02\x02", 3));
  REQUIRE(at != std::string::npos);
  REQUIRE(bytes.substr(at + 11, 8) == std::string("\x0a\0\0\0\x04\0\0\0", 8));
  bytes.replace(at + 11, 4, std::string("\0\0\0\x10", 4));
  write_bytes(folder / "d.h5", bytes);
  const auto file = Hdf5Reader::open(folder / "d.h5");
  REQUIRE(file);
  check_error(file->read_floats("d"), ErrorCode::kData, "d.h5");
}

TEST_CASE("HDF5: groups that contain themselves, or each other many times, are an error") {
  const TempDir folder;
  // Each group leads twice to the one before: 2^15 ways to the first.
  write_hdf5(folder / "m.h5",
             {{.path = "/n0/0", .dims = {4}, .write = true},
              {.path = "/data/x/0", .dims = {4}, .write = true}},
             [](hid_t file) {
               std::string last = "/n0";
               for (int i = 1; i <= 15; ++i) {
                 const std::string next = "/n" + std::to_string(i);
                 H5Gclose(H5Gcreate2(file, next.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
                 for (const char* link : {"/a", "/b"}) {
                   REQUIRE(H5Lcreate_hard(file, last.c_str(), file, (next + link).c_str(),
                                          H5P_DEFAULT, H5P_DEFAULT) >= 0);
                 }
                 last = next;
               }
               REQUIRE(H5Lcreate_hard(file, last.c_str(), file, "/data/top", H5P_DEFAULT,
                                      H5P_DEFAULT) >= 0);
             });
  check_error(read_model(folder / "m.h5"), ErrorCode::kData, "more than 16384 groups");
  write_hdf5(folder / "m.h5", {{.path = "/data/a/0", .dims = {4}, .write = true}}, [](hid_t file) {
    for (const char* link : {"/data/a/b", "/data/a/c"}) {
      REQUIRE(H5Lcreate_hard(file, "/data/a", file, link, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    }
  });
  check_error(read_model(folder / "m.h5"), ErrorCode::kData, "m.h5");
}

TEST_CASE("HDF5: parameters that many ways lead to are an error") {
  const TempDir folder;
  std::vector<Dataset> many(128);
  for (std::size_t i = 0; i < many.size(); ++i) {
    many[i] = {.path = "/data/l/" + std::to_string(i), .dims = {1}, .write = true};
  }
  write_hdf5(folder / "m.h5", many, [](hid_t file) {
    for (int i = 0; i < 200; ++i) {
      const std::string link = "/data/m" + std::to_string(i);
      REQUIRE(H5Lcreate_hard(file, "/data/l", file, link.c_str(), H5P_DEFAULT, H5P_DEFAULT) >= 0);
    }
  });
  check_error(read_model(folder / "m.h5"), ErrorCode::kData, "more than 16384 parameters");
}

// A dataset of one string of variable length.
void add_text(hid_t file, const std::string& path, const std::string& text,
              H5D_layout_t layout = H5D_CONTIGUOUS) {
  const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  H5Tset_size(type, H5T_VARIABLE);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_layout(creation, layout);
  const hid_t data =
      H5Dcreate2(file, path.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  const char* const value = text.c_str();
  REQUIRE(H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) >= 0);
  H5Dclose(data);
  H5Pclose(creation);
  H5Sclose(space);
  H5Tclose(type);
}

Result<std::string> text_in(const fs::path& path, const std::string& dataset = "/text") {
  SPEEDO_ASSIGN(const Hdf5Reader file, Hdf5Reader::open(path));
  return file.read_string(dataset);
}

TEST_CASE("HDF5: strings of variable length are read as they are, up to a megabyte") {
  const TempDir folder;
  const fs::path path = folder / "t.h5";
  const std::string long_one(kHdf5TextBytesMax, 'x');
  write_hdf5(path, {}, [&](hid_t file) {
    add_text(file, "/text", "net_iter_100.caffemodel.h5");
    add_text(file, "/empty", "");
    for (int i = 0; i < 300; ++i) {
      add_text(file, "/n" + std::to_string(i), std::string(static_cast<std::size_t>(i), 'a'));
    }
    add_text(file, "/most", long_one);
    add_text(file, "/more", long_one + "x");
    add_text(file, "/compact", "abc", H5D_COMPACT);
  });
  CHECK(text_in(path).value() == "net_iter_100.caffemodel.h5");
  CHECK(text_in(path, "/empty").value().empty());
  for (int i = 0; i < 300; ++i) {
    CAPTURE(i);
    REQUIRE(text_in(path, "/n" + std::to_string(i)).value() ==
            std::string(static_cast<std::size_t>(i), 'a'));
  }
  CHECK((text_in(path, "/most").value() == long_one));
  check_error(text_in(path, "/more"), ErrorCode::kData, "1048577 bytes, more than 1048576");
  check_error(text_in(path, "/compact"), ErrorCode::kData, "fixed length");
}

TEST_CASE("HDF5: a string of variable length that lies about its size takes no memory") {
  const TempDir folder;
  const fs::path path = folder / "t.h5";
  const std::string word = "a-word-of-its-own";
  write_hdf5(path, {}, [&](hid_t file) { add_text(file, "/text", word); });
  const std::string sound = read_bytes(path);
  const std::size_t text_at = sound.find(word), heap_at = sound.find("GCOL");
  REQUIRE(text_at != std::string::npos);
  REQUIRE(heap_at != std::string::npos);
  const auto little = [](std::uint64_t number, std::size_t count) {
    std::string bytes;
    for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(number >> (8 * i));
    return bytes;
  };
  const std::string element = little(word.size(), 4) + little(heap_at, 8) + little(1, 4);
  const std::size_t element_at = sound.find(element);
  REQUIRE(element_at != std::string::npos);
  const auto with = [&](std::size_t at, const std::string& bytes) {
    std::string changed = sound;
    changed.replace(at, bytes.size(), bytes);
    write_bytes(path, changed);
    return text_in(path);
  };
  CHECK(with(0, sound.substr(0, 1)).value() == word);
  // A length of gigabytes, or beyond its object; an object beyond its heap; a heap beyond the file.
  check_error(with(element_at, little(0xfffffff0U, 4)), ErrorCode::kData, "4294967280 bytes");
  check_error(with(element_at, little(word.size() + 1, 4)), ErrorCode::kData, "damaged");
  check_error(with(text_at - 8, little(std::uint64_t{1} << 40U, 8)), ErrorCode::kData, "damaged");
  check_error(with(text_at - 8, little(UINT64_MAX, 8)), ErrorCode::kData, "damaged");
  check_error(with(element_at + 4, little(sound.size(), 8)), ErrorCode::kData, "damaged");
  check_error(with(element_at + 4, little(UINT64_MAX, 8)), ErrorCode::kData, "damaged");
  check_error(with(element_at + 4, little(heap_at + 1, 8)), ErrorCode::kData, "damaged");
  check_error(with(element_at + 12, little(2, 4)), ErrorCode::kData, "damaged");
  check_error(with(heap_at + 8, little(20, 8)), ErrorCode::kData, "damaged");
  // An object that is larger than the string: the library would write all of it.
  CHECK(with(element_at, little(3, 4)).value() == word.substr(0, 3));
  CHECK(with(element_at, little(0, 4)).value().empty());
}

TEST_CASE("HDF5: an iteration that counts no steps is refused") {
  const TempDir folder;
  const auto write = [&](std::int64_t iteration, std::int64_t step) {
    write_hdf5(
        folder / "s.h5", {{.path = "/history/0", .dims = {1}, .write = true}}, [&](hid_t file) {
          const hid_t space = H5Screate(H5S_SCALAR);
          for (const auto& [name, value] :
               {std::pair("/iter", iteration), std::pair("/current_step", step)}) {
            const hid_t data =
                H5Dcreate2(file, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
            H5Dwrite(data, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value);
            H5Dclose(data);
          }
          H5Sclose(space);
        });
    return read_solver_state(folder / "s.h5");
  };
  CHECK(write(INT_MAX, 0)->iter() == INT_MAX);
  check_error(write(-1, 0), ErrorCode::kData, "'/iter' is -1");
  check_error(write(std::int64_t{INT_MAX} + 1, 0), ErrorCode::kData, "'/iter' is 2147483648");
  check_error(write((std::int64_t{1} << 32U) + 5, 0), ErrorCode::kData, "'/iter' is 4294967301");
  check_error(write(5, -3), ErrorCode::kData, "'/current_step' is -3");
  caffe::SolverState state;
  for (const auto& [iteration, step] : {std::pair(-1, 0), std::pair(5, -3)}) {
    state.set_iter(iteration);
    state.set_current_step(step);
    REQUIRE(write_solver_state(folder / "s", state, caffe::SolverParameter::BINARYPROTO));
    check_error(read_solver_state(folder / "s"), ErrorCode::kData, "count no steps");
  }
}

// A PNG of zeros that holds `rows` of the rows it announces.
std::string png_of_zeros(std::uint32_t width, std::uint32_t height, char bits, char color,
                         std::size_t row_bytes, std::size_t rows) {
  const std::string raw((row_bytes + 1) * rows, '\0');
  uLongf size = compressBound(raw.size());
  std::string packed(size, '\0');
  compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
            reinterpret_cast<const Bytef*>(raw.data()), raw.size(), 9);
  packed.resize(size);
  const std::string header =
      big32_text(width) + big32_text(height) + bits + color + std::string(3, '\0');
  return std::string("\x89PNG\r\n\x1a\n", 8) + png_chunk("IHDR", header) +
         png_chunk("IDAT", packed) + png_chunk("IEND", "");
}

Result<void> decode(const std::string& file, Record& record) {
  return decode_image(std::as_bytes(std::span(file)), ImageColor::kNative, record);
}

TEST_CASE("A PNG that announces more pixels than its bytes can hold is refused") {
  Record record;
  const std::string bomb = png_of_zeros(13400, 13400, 8, 2, std::size_t{13400} * 3, 1);
  REQUIRE(bomb.size() < 300);
  check_error(decode(bomb, record), ErrorCode::kData, "announces 514 MiB");
  CHECK(record.bytes.capacity() < 1000);
}

TEST_CASE("PNGs that compress as far as deflate can are read") {
  Record record;
  REQUIRE(decode(png_of_zeros(3000, 3000, 8, 2, 9000, 3000), record));
  CHECK(record.bytes == std::vector<std::uint8_t>(27'000'000));
  // One bit a pixel, which becomes a byte.
  REQUIRE(decode(png_of_zeros(16000, 1000, 1, 0, 2000, 1000), record));
  CHECK(record.bytes.size() == 16'000'000);
}

// A JPEG of white pixels, with the fewest bits that libjpeg can make of them.
std::string white_jpeg(unsigned side, bool progressive) {
  const std::vector<std::uint8_t> row(std::size_t{side} * 3, 255);
  return make_jpeg(side, 3, row, [&](jpeg_compress_struct& encoder) {
    encoder.optimize_coding = TRUE;
    if (progressive) jpeg_simple_progression(&encoder);
  });
}

TEST_CASE("A JPEG that announces more pixels than its bytes can hold is refused") {
  Record record;
  for (const bool progressive : {false, true}) {
    std::string file = white_jpeg(4000, progressive);
    REQUIRE(decode(file, record));
    CHECK(record.bytes == std::vector<std::uint8_t>(48'000'000, 255));
    const std::size_t frame = file.find(progressive ? "\xff\xc2" : "\xff\xc0");
    REQUIRE(frame != std::string::npos);
    file.replace(frame + 5, 4, std::string("\x59\xd8\x59\xd8", 4));  // 23000 x 23000
    check_error(decode(file, record), ErrorCode::kData, "23000x23000");
  }
}

void pack(const fs::path& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb9");
  REQUIRE(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) > 0);
  gzclose(file);
}

TEST_CASE("A gzip file is unpacked no further than to what it should hold") {
  const TempDir folder;
  pack(folder / "bomb.gz", std::string(8 * kMib, '\0'));
  REQUIRE(fs::file_size(folder / "bomb.gz") < 20000);
  check_error(RandomFile::open_unpacked(folder / "bomb.gz", 1000), ErrorCode::kData,
              "unpacks to more than 1000 bytes");
  const auto whole = RandomFile::open_unpacked(folder / "bomb.gz", 8 * kMib);
  REQUIRE(whole);
  CHECK(whole->bytes() == 8 * kMib);
  // An idx file says itself how long it is.
  const std::string header = big32_text(0x803) + big32_text(4) + big32_text(2) + big32_text(3);
  const std::string labels = big32_text(0x801) + big32_text(4) + "abcd";
  const fs::path images = folder / "train-images-idx3-ubyte.gz";
  pack(images, header + std::string(8 * kMib, '\0'));
  pack(folder / "train-labels-idx1-ubyte.gz", labels);
  check_error(open_idx(images, idx_labels_beside(images)), ErrorCode::kData,
              "unpacks to more than 40 bytes");
  // What is more than memory is for is not unpacked at all.
  pack(images, big32_text(0x803) + big32_text(65536) + big32_text(256) + big32_text(256) + "x");
  check_error(open_idx(images, idx_labels_beside(images)), ErrorCode::kData,
              "announces 4294967312 bytes, but at most 2147483648 are unpacked in memory");
  pack(images, header + std::string(24, '\0'));
  CHECK(open_idx(images, idx_labels_beside(images)));
  pack(folder / "train-labels-idx1-ubyte.gz", labels + std::string(8 * kMib, '\0'));
  check_error(open_idx(images, idx_labels_beside(images)), ErrorCode::kData,
              "unpacks to more than 12 bytes");
}

}  // namespace
}  // namespace speedo
