#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <speedo/base/random.hpp>

#include "caffe.pb.h"
#include "data/datumfile_support.hpp"

namespace speedo::bench {

// A file of images, and how a net reads it.
struct ImageFile {
  std::string name;
  std::filesystem::path path;
  std::uint64_t records = 0;
  int batch_size = 0, crop = 0;
};

// What one pass over a file took.
struct DecodeTimes {
  double records_per_second = 0.0;
  double cpu_us_per_record = 0.0;
};

caffe::Datum raw_datum(int side, int channels, Random& random);
// Of quality 85.
caffe::Datum jpeg_datum(int side, Random& random);
caffe::Datum png_datum(int side, Random& random);

template <class Make>
void write_images(const ImageFile& file, Make make) {
  std::ofstream stream(file.path, std::ios::binary);
  Random random(1);
  for (std::uint64_t i = 0; i < file.records; ++i) {
    stream << record_text(std::to_string(i), make(random).SerializeAsString());
  }
}

// Passes over the file by a feed of so many threads, behind one that fills memory and caches. CPU
// time is that of this process, and of those that it waited for. An error ends the program.
DecodeTimes read_all(const ImageFile& file, int threads, int passes = 1);

}  // namespace speedo::bench
