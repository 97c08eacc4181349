#include "data/image/convert_images.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>
#include <speedo/base/random.hpp>
#include <speedo/base/thread_name.hpp>

#include "caffe.pb.h"
#include "data/bad_records.hpp"
#include "data/dataset_writer.hpp"
#include "data/datum/datum.hpp"
#include "data/image/image_encoder.hpp"
#include "data/image/image_name.hpp"
#include "data/permute.hpp"
#include "data/record_group.hpp"

namespace speedo {

namespace {

// Images that a thread has at a time: enough that it rarely waits for the others.
constexpr std::size_t kImagesPerThread = 16;

// An image as it goes into the database.
struct MadeDatum {
  std::string value;
  std::size_t data_bytes = 0;  // of its pixels
};

bool is_jpeg(const std::string& ending) { return ending == "jpg" || ending == "jpeg"; }

class DatumMaker {
 public:
  DatumMaker(ImageListSource& source, const ConvertImagesOptions& options)
      : source_(source), options_(options) {}

  // What the image becomes that was read.
  Result<MadeDatum> make(RecordRead read) const {
    SPEEDO_TRY(std::move(read.outcome));
    const Record& record = *read.record;
    caffe::Datum datum;
    MadeDatum made;
    if (!options_.encoded) {
      encode_datum(record, datum, made.value);
      datum.set_encoded(false);  // written down, as Caffe's tool does
      datum.SerializeToString(&made.value);
      made.data_bytes = record.bytes.size();
      return made;
    }
    SPEEDO_TRY(set_file(read.index, record, datum));
    datum.set_label(static_cast<int>(record.label));
    datum.set_encoded(true);
    datum.SerializeToString(&made.value);
    made.data_bytes = static_cast<std::size_t>(record.count());
    return made;
  }

 private:
  // The image's own file, if it is of the encoding and not to be stretched.
  Result<void> set_file(std::int64_t index, const Record& record, caffe::Datum& datum) const {
    const std::string ending = ending_of(source_.list().name(index));
    const std::string encoding = options_.encoding.empty() ? ending : lower_case(options_.encoding);
    const bool same = ending == encoding || (is_jpeg(ending) && is_jpeg(encoding));
    if (same && options_.images.height == 0) {
      SPEEDO_ASSIGN(std::string file, source_.read_image_file(index));
      datum.set_data(std::move(file));
      return {};
    }
    auto file = encode_image(record, encoding);
    if (!file) {
      return Error{file.error().code,
                   fmt::format("{}: '{}' {}", source_.list().place(index),
                               source_.list().name(index), file.error().message)};
    }
    datum.set_data(*std::move(file));
    datum.set_channels(static_cast<int>(record.channels));
    datum.set_height(static_cast<int>(record.height));
    datum.set_width(static_cast<int>(record.width));
    return {};
  }

  ImageListSource& source_;
  const ConvertImagesOptions& options_;
};

std::vector<std::int64_t> order_of(std::int64_t size, std::optional<std::uint64_t> seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (seed) shuffle(order, Random(*seed));
  return order;
}

using Outcomes = std::vector<Result<MadeDatum>>;

// The images of a stretch of the list, which threads make together.
class Stretch {
 public:
  Stretch(const DatumMaker& maker, ImageListSource& source, std::span<const std::int64_t> indices)
      : maker_(maker),
        source_(source),
        indices_(indices),
        outcomes_(indices.size(), Result<MadeDatum>(MadeDatum{})) {}

  // A thread's part: group after group of those that nobody has, each as large as the last one's
  // images suggest.
  void work() {
    std::vector<Record> records;
    std::vector<RecordRead> reads;
    std::size_t together = 1;
    for (std::size_t first = next_.fetch_add(together); first < indices_.size();
         first = next_.fetch_add(together)) {
      const std::size_t count = std::min(together, indices_.size() - first);
      records.resize(count);
      reads.clear();
      for (std::size_t i = 0; i < count; ++i) reads.push_back({indices_[first + i], &records[i]});
      source_.read_group(reads);
      for (std::size_t i = 0; i < count; ++i) outcomes_[first + i] = maker_.make(reads[i]);
      together = static_cast<std::size_t>(records_together(records.front().count()));
    }
  }
  Outcomes take_outcomes() { return std::move(outcomes_); }

 private:
  const DatumMaker& maker_;
  ImageListSource& source_;
  const std::span<const std::int64_t> indices_;
  Outcomes outcomes_;  // each of one thread
  std::atomic<std::size_t> next_{0};
};

Outcomes make_all(Stretch& stretch, int threads) {
  std::vector<std::thread> helpers;
  for (int i = 1; i < threads; ++i) {
    helpers.emplace_back([&stretch] {
      name_thread("decode");
      stretch.work();
    });
  }
  stretch.work();
  for (std::thread& helper : helpers) helper.join();
  return stretch.take_outcomes();
}

// Puts images into the database, in order.
class ImageWriter {
 public:
  ImageWriter(const ImageList& list, const ConvertImagesOptions& options,
              std::unique_ptr<DatabaseWriter> database)
      : list_(list),
        options_(options),
        bad_(options.output.on_bad_record, nullptr),
        database_(std::move(database)),
        digits_(std::max<std::size_t>(8, std::to_string(list.size() - 1).size())) {}

  Result<void> add(std::int64_t index, Result<MadeDatum> made) {
    const std::int64_t number = count_.written + count_.skipped;
    if (!made) {
      if (!bad_.pass_over(static_cast<std::uint64_t>(index), made.error(), in_a_row_)) {
        return std::move(made).error();
      }
      ++count_.skipped;
      ++in_a_row_;
      return {};
    }
    in_a_row_ = 0;
    if (options_.check_size && count_.written > 0 && made->data_bytes != first_bytes_) {
      return Error{
          ErrorCode::kData,
          fmt::format("{}: '{}' has {} bytes of data, but the first image has {}: give "
                      "--resize-height and --resize-width",
                      list_.place(index), list_.name(index), made->data_bytes, first_bytes_)};
    }
    if (count_.written++ == 0) first_bytes_ = made->data_bytes;
    return database_->put(fmt::format("{:0{}}_{}", number, digits_, list_.name(index)),
                          std::move(made->value));
  }

  Result<ConvertedImages> commit() {
    if (count_.written == 0) return Error{ErrorCode::kData, "no image could be read"};
    SPEEDO_TRY(database_->commit());
    return count_;
  }

 private:
  const ImageList& list_;
  const ConvertImagesOptions& options_;
  BadRecords bad_;
  std::unique_ptr<DatabaseWriter> database_;
  const std::size_t digits_;
  ConvertedImages count_;
  std::uint64_t in_a_row_ = 0;
  std::size_t first_bytes_ = 0;
};

}  // namespace

Result<ConvertedImages> convert_images(ImageList list, const ConvertImagesOptions& options) {
  SPEEDO_ASSERT(options.threads >= 1);
  SPEEDO_ASSIGN(std::unique_ptr<DatabaseWriter> database, make_database_writer(options.output));
  ImageListSource source(std::move(list), options.images);
  const DatumMaker maker(source, options);
  ImageWriter writer(source.list(), options, std::move(database));
  const std::vector<std::int64_t> order = order_of(source.size(), options.shuffle_seed);
  const std::size_t chunk = kImagesPerThread * static_cast<std::size_t>(options.threads);
  for (std::size_t done = 0; done < order.size();) {
    const auto indices = std::span(order).subspan(done, std::min(chunk, order.size() - done));
    Stretch stretch(maker, source, indices);
    Outcomes outcomes = make_all(stretch, options.threads);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      SPEEDO_TRY(writer.add(indices[i], std::move(outcomes[i])));
      ++done;
      SPEEDO_TRY(go_on(options.output, static_cast<std::int64_t>(done), source.size()));
    }
  }
  return writer.commit();
}

}  // namespace speedo
