#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/bad_records.hpp"
#include "data/batch_reader.hpp"
#include "data/hdf5/hdf5_file.hpp"
#include "data/recently_used.hpp"

namespace speedo {

// The stream of an HDF5Data layer: the rows of the files of a list, in order, one dataset a top.
//
// Shuffled, each epoch visits the files in an order of its own and each file's rows likewise, as
// Caffe does: rows of one file stay together, so files far larger than memory can be read.
//
// Where bad records are skipped, a file that cannot be opened, or whose datasets do not fit
// together, is left out as one record; of other files single rows that cannot be read are, as those
// of a damaged chunk.
class Hdf5BatchReader : public BatchReader {
 public:
  struct Options {
    std::filesystem::path list;         // file with the names of the HDF5 files
    std::string list_uri = {};          // where it comes from; empty: it is a local file
    std::filesystem::path base;         // second place to look for relative names
    std::vector<std::string> datasets;  // one a top
    std::int64_t batch_size = 1;
    bool shuffle = false;
    std::uint64_t seed = 0;
    double start_fraction = 0.0;  // of all rows, at the stream's row 0
    OnBadRecord on_bad_record = OnBadRecord::kAbort;
    std::shared_ptr<FeedMeter> meter = {};
  };
  // Opens every file once to count rows and compare shapes. Errors: kNotFound, kData, naming file
  // and dataset.
  static Result<std::unique_ptr<BatchReader>> create(const Options& options);

  const std::vector<Shape>& shapes() const override { return shapes_; }
  std::uint64_t record_count() const override { return row_count_; }
  // HDF5 is used under one lock, so another thread would only wait.
  std::int64_t part_count() const override { return 1; }
  bool takes_threads() const override { return false; }
  std::int64_t scratch_bytes() const override { return 0; }
  Result<void> read(std::uint64_t batch, std::int64_t part, BatchTops& tops) override;

 private:
  // A file that is open, with what of it is small enough to keep in memory.
  struct OpenFile {
    Hdf5Reader reader;
    std::vector<std::vector<float>> tops;  // empty: read from the file
  };
  // A stream that jumps between shards comes back to the same ones.
  static constexpr std::size_t kOpenFilesMax = 4;
  struct Place {
    std::size_t file;
    std::int64_t row;
    std::int64_t run;  // rows of the stream from here on that lie one after the other
  };

  explicit Hdf5BatchReader(const Options& options);
  Result<void> add_files(const std::string& list);
  Result<void> add_file(const std::string& name);
  Result<std::int64_t> inspect(const std::filesystem::path& path);
  Result<std::vector<std::vector<float>>> read_whole(const Hdf5Reader& reader,
                                                     std::int64_t rows) const;
  Result<OpenFile*> open(std::size_t file);
  Place locate(std::uint64_t position);
  Result<void> read_run(const Place& place, std::int64_t count, std::int64_t target,
                        BatchTops& tops);
  Result<void> read_good_row(std::uint64_t position, std::int64_t target, BatchTops& tops);
  void shuffle_epoch(std::uint64_t epoch);
  void shuffle_rows(std::uint64_t epoch, std::size_t file);

  Options options_;
  BadRecords bad_files_, bad_rows_;
  std::vector<std::filesystem::path> files_;
  std::vector<std::int64_t> file_rows_;
  std::uint64_t row_count_ = 0, first_row_ = 0;
  std::vector<Shape> shapes_;
  RecentlyUsed<std::size_t, OpenFile> open_{kOpenFilesMax};  // by file

  // The permutations of the epoch and file that were used last.
  std::uint64_t file_epoch_ = UINT64_MAX, row_epoch_ = UINT64_MAX;
  std::size_t row_file_ = SIZE_MAX;
  std::vector<std::size_t> file_order_;
  std::vector<std::int64_t> row_order_;
};

}  // namespace speedo
