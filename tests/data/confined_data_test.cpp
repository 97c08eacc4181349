// Data sets that a net names, with everything that they name in turn, where inputs are confined.

#include <cstdlib>
#include <hdf5.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/input_roots.hpp"
#include "data/hdf5/hdf5_file.hpp"
#include "data/open_source.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

void check_confined(const fs::path& source) {
  const auto opened = open_source(source.string(), {});
  REQUIRE_FALSE(opened);
  INFO(opened.error().message);
  CHECK(opened.error().code == ErrorCode::kData);
  CHECK(opened.error().message.find("--data-root") != std::string::npos);
}

TEST_CASE("A source outside of the roots is refused, by whichever way it is named") {
  const TempDir folder;
  for (const char* name : {"root", "out", "root/lmdb"}) fs::create_directory(folder / name);
  std::ofstream(folder / "out/data.mdb") << "not read";
  std::ofstream(folder / "out/data.bin") << "not read";
  fs::create_directory_symlink(folder / "out", folder / "root/linked");
  fs::create_symlink("../../out/data.mdb", folder / "root/lmdb/data.mdb");
  const auto roots = InputRoots::confine({{folder / "root"}});
  REQUIRE(roots);
  for (const char* name : {"out", "out/data.bin", "root/linked", "root/linked/data.bin",
                           "root/../out", "root/lmdb"}) {
    INFO(name);
    check_confined(folder / name);
  }
  const auto absent = open_source("absent_lmdb", {});
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == ErrorCode::kNotFound);
  CHECK(absent.error().message.find((folder / "root").string()) != std::string::npos);
  CHECK(open_source("file:///etc/passwd", {}).error().code == ErrorCode::kData);
}

// A file with a dataset "data" of one float.
void write_hdf5(const fs::path& path) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t size = 1;
  const hid_t space = H5Screate_simple(1, &size, nullptr);
  const hid_t data = H5Dcreate2(file, "data", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT,
                                H5P_DEFAULT);
  const float value = 1.5F;
  REQUIRE(H5Dwrite(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) >= 0);
  H5Dclose(data);
  H5Sclose(space);
  H5Fclose(file);
}

TEST_CASE("HDF5 files are read below the roots, and lead to no other file") {
  const TempDir folder;
  fs::create_directory(folder / "root");
  fs::create_directory(folder / "out");
  write_hdf5(folder / "root/good");
  write_hdf5(folder / "out/secret");
  const hid_t file = H5Fopen((folder / "root/good").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  REQUIRE(H5Lcreate_external((folder / "out/secret").c_str(), "/data", file, "away", H5P_DEFAULT,
                             H5P_DEFAULT) >= 0);
  REQUIRE(H5Lcreate_soft("/away", file, "soft", H5P_DEFAULT, H5P_DEFAULT) >= 0);
  H5Fclose(file);
  {
    const auto open = Hdf5Reader::open(folder / "root/good");
    REQUIRE(open);
    // Parsers follow none.
    CHECK(open->read_floats("away").has_value() == (std::getenv("SPEEDO_TEST_PARSERS") == nullptr));
  }
  const auto roots = InputRoots::confine({{folder / "root"}});
  REQUIRE(roots);
  CHECK(Hdf5Reader::open(folder / "out/secret").error().code == ErrorCode::kData);
  const auto open = Hdf5Reader::open(folder / "root/good");
  REQUIRE(open);
  CHECK(open->read_floats("data").value() == std::vector{1.5F});
  CHECK_FALSE(open->read_floats("away"));
  CHECK_FALSE(open->read_floats("soft"));
}

}  // namespace
}  // namespace speedo
