#pragma once

#include <filesystem>
#include <memory>

#include <speedo/base/result.hpp>
#include <speedo/data/data_source.hpp>

#include "data/image/transformer.hpp"

namespace speedo {

// How a table of numbers becomes images with labels.
struct CsvOptions {
  ImageDims dims = {};       // of a record; all zero: as many channels as there are values
  bool label_first = false;  // the label is the first column instead of the last
  bool header = false;       // the first line names the columns
  char delimiter = ',';
  // Value = number * scale + offset, rounded to a byte 0..255. Without these two, nothing is
  // rounded: numbers that are no bytes are refused.
  float scale = 1.0F;
  float offset = 0.0F;
  bool floats = false;  // keep values as floats, unrounded
};

// Reads the whole table into memory; the file may be gzip-compressed. Errors: kNotFound; kConfig
// for impossible dims; kData with line and column.
Result<std::unique_ptr<DataSource>> open_csv(const std::filesystem::path& path,
                                             const CsvOptions& options);

}  // namespace speedo
