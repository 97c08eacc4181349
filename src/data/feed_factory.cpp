#include "data/feed_factory.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <speedo/base/digest.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/base/random.hpp>
#include <speedo/base/remote_files.hpp>

#include "base/read_found.hpp"
#include "caffe.pb.h"
#include "data/datum_batch_reader.hpp"
#include "data/hdf5/hdf5_batch_reader.hpp"
#include "data/image/image_list.hpp"
#include "data/image/window_batch_reader.hpp"
#include "data/open_source.hpp"
#include "data/prefetch_feed.hpp"

namespace speedo {

namespace {

using ReaderResult = Result<std::unique_ptr<BatchReader>>;

Error bad_field(std::string what) { return Error{ErrorCode::kConfig, std::move(what)}; }

// Two data layers of one net must not toss the same coins.
std::uint64_t layer_seed(const caffe::LayerParameter& layer, std::uint64_t seed) {
  return seed ^ digest_of(layer.name()).low;
}

Result<ImageColor> image_color(const caffe::LayerParameter& layer) {
  const caffe::TransformationParameter& transform = layer.transform_param();
  const bool color = transform.force_color() || layer.data_param().force_encoded_color();
  if (color && transform.force_gray()) {
    return bad_field("force_color and force_gray exclude each other");
  }
  if (color) return ImageColor::kColor;
  return transform.force_gray() ? ImageColor::kGray : ImageColor::kNative;
}

SourceKind source_kind(caffe::DataParameter::DB backend) {
  switch (backend) {
    case caffe::DataParameter::LMDB:
      return SourceKind::kLmdb;
    case caffe::DataParameter::DATUMFILE:
      return SourceKind::kDatumfile;
    case caffe::DataParameter::LEVELDB:
      break;
  }
  return SourceKind::kLevelDb;
}

// Where the stream begins: SpeeDO's share of the data, or Caffe's random number of skipped records.
std::uint64_t first_record(std::uint32_t rand_skip, const FeedOptions& options, std::uint64_t seed,
                           std::int64_t size) {
  if (options.start_fraction > 0.0) {
    return static_cast<std::uint64_t>(options.start_fraction * static_cast<double>(size));
  }
  if (rand_skip == 0) return 0;
  constexpr std::uint64_t kSkipStream = 0x736b6970;  // apart from the streams of mirrors and crops
  return Random::derive(seed, {kSkipStream, kSkipStream}).below(rand_skip);
}

Result<void> check_batch_size(std::uint32_t batch_size) {
  if (batch_size == 0 || batch_size > kBlobElementsMax) {
    return bad_field(fmt::format("batch_size is {}, but must be between 1 and {}", batch_size,
                                 kBlobElementsMax));
  }
  return {};
}

// What readers share, beside the layer.
struct FactoryOptions {
  OnBadRecord on_bad_record = OnBadRecord::kAbort;
  std::shared_ptr<FeedMeter> meter;
};

DatumBatchReader::Options reader_options(const caffe::LayerParameter& layer,
                                         const FeedOptions& options,
                                         const FactoryOptions& factory) {
  DatumBatchReader::Options reader;
  reader.with_labels = options.top_count > 1;
  reader.seed = layer_seed(layer, options.seed);
  reader.on_bad_record = factory.on_bad_record;
  reader.meter = factory.meter;
  return reader;
}

ReaderResult open_records(const caffe::LayerParameter& layer, const FeedOptions& options,
                          const FactoryOptions& factory) {
  const caffe::DataParameter& data = layer.data_param();
  if (data.source().empty()) return bad_field("data_param has no source");
  SPEEDO_TRY(check_batch_size(data.batch_size()));
  SourceOptions source_options;
  SPEEDO_ASSIGN(source_options.color, image_color(layer));
  source_options.base = options.base;
  if (data.has_backend()) source_options.kind = source_kind(data.backend());
  SPEEDO_ASSIGN(Transformer transformer,
                Transformer::create(layer.transform_param(), options.phase, options.base));
  SPEEDO_ASSIGN(std::unique_ptr<DataSource> source, open_source(data.source(), source_options));
  DatumBatchReader::Options reader = reader_options(layer, options, factory);
  reader.batch_size = data.batch_size();
  reader.first_record = first_record(data.rand_skip(), options, reader.seed, source->size());
  return DatumBatchReader::create(std::move(source), std::move(transformer), reader);
}

// What stands before the names of a list: a list at a URI has its files beside it.
std::string root_beside(const std::string& list, const std::string& root,
                        const std::filesystem::path& base) {
  const std::string place = resolve_name(list, base);
  return is_uri(place) ? uri_beside(place, root) : root;
}

Result<void> check_new_size(const caffe::ImageDataParameter& data) {
  const std::uint64_t height = data.new_height(), width = data.new_width();
  if ((height > 0) != (width > 0)) {
    return bad_field("new_height and new_width belong together: set both, or neither");
  }
  constexpr std::uint64_t kChannels = 3;
  if (height * width <= static_cast<std::uint64_t>(kBlobElementsMax) / kChannels) return {};
  return bad_field(
      fmt::format("new_height {} and new_width {} make images of too many pixels", height, width));
}

ReaderResult open_images(const caffe::LayerParameter& layer, const FeedOptions& options,
                         const FactoryOptions& factory) {
  const caffe::ImageDataParameter& data = layer.image_data_param();
  if (data.source().empty()) return bad_field("image_data_param has no source");
  SPEEDO_TRY(check_batch_size(data.batch_size()));
  SPEEDO_TRY(check_new_size(data));
  SPEEDO_ASSIGN(Transformer transformer,
                Transformer::create(layer.transform_param(), options.phase, options.base));
  SPEEDO_ASSIGN(ImageList list, read_found(data.source(), options.base, ImageList::read));
  auto source = std::make_unique<ImageListSource>(
      std::move(list),
      ImageListOptions{.root = root_beside(data.source(), data.root_folder(), options.base),
                       .base = options.base,
                       .color = data.is_color() ? ImageColor::kColor : ImageColor::kGray,
                       .height = data.new_height(),
                       .width = data.new_width()});
  DatumBatchReader::Options reader = reader_options(layer, options, factory);
  reader.batch_size = data.batch_size();
  reader.shuffle = data.shuffle();
  reader.first_record = first_record(data.rand_skip(), options, reader.seed, source->size());
  return DatumBatchReader::create(std::move(source), std::move(transformer), reader);
}

ReaderResult open_windows(const caffe::LayerParameter& layer, const FeedOptions& options,
                          const FactoryOptions& factory) {
  const caffe::WindowDataParameter& data = layer.window_data_param();
  if (data.source().empty()) return bad_field("window_data_param has no source");
  SPEEDO_TRY(check_batch_size(data.batch_size()));
  SPEEDO_ASSIGN(const WindowShape shape, window_shape(data, layer.transform_param(), options.base));
  SPEEDO_ASSIGN(WindowFile file,
                read_found(data.source(), options.base, [&](const std::filesystem::path& found) {
                  return WindowFile::read(found, data);
                }));
  WindowBatchReader::Options reader;
  reader.batch_size = data.batch_size();
  reader.foreground =
      static_cast<std::int64_t>(static_cast<float>(data.batch_size()) * data.fg_fraction());
  reader.root = root_beside(data.source(), data.root_folder(), options.base);
  reader.base = options.base;
  reader.cache_images = data.cache_images();
  reader.seed = layer_seed(layer, options.seed);
  reader.on_bad_record = factory.on_bad_record;
  reader.meter = factory.meter;
  return WindowBatchReader::create(std::move(file), shape, reader);
}

ReaderResult open_hdf5(const caffe::LayerParameter& layer, const FeedOptions& options,
                       const FactoryOptions& factory) {
  const caffe::HDF5DataParameter& data = layer.hdf5_data_param();
  if (data.source().empty()) return bad_field("hdf5_data_param has no source");
  SPEEDO_TRY(check_batch_size(data.batch_size()));
  if (layer.has_transform_param()) {
    return bad_field("HDF5 data are not transformed: remove transform_param");
  }
  Hdf5BatchReader::Options reader;
  SPEEDO_ASSIGN(reader.list, find_file(data.source(), options.base));
  const std::string place = resolve_name(data.source(), options.base);
  if (is_uri(place)) reader.list_uri = place;
  reader.base = options.base;
  reader.datasets.assign(layer.top().begin(), layer.top().end());
  reader.batch_size = data.batch_size();
  reader.shuffle = data.shuffle();
  reader.seed = layer_seed(layer, options.seed);
  reader.start_fraction = options.start_fraction;
  reader.on_bad_record = factory.on_bad_record;
  reader.meter = factory.meter;
  auto made = Hdf5BatchReader::create(reader);
  if (!made) return from_uri(std::move(made).error(), place);
  return made;
}

ReaderResult open_reader(const caffe::LayerParameter& layer, const FeedOptions& options,
                         const FactoryOptions& factory) {
  if (layer.type() == "Data") return open_records(layer, options, factory);
  if (layer.type() == "ImageData") return open_images(layer, options, factory);
  if (layer.type() == "WindowData") return open_windows(layer, options, factory);
  if (layer.type() == "HDF5Data") return open_hdf5(layer, options, factory);
  return bad_field(fmt::format("layer type {} reads no data source", layer.type()));
}

class Factory : public FeedFactory {
 public:
  Factory(int threads, OnBadRecord on_bad_record)
      : threads_(std::min(threads, kDecodeThreadsMax)), on_bad_record_(on_bad_record) {}
  Result<std::unique_ptr<BatchFeed>> open(const caffe::LayerParameter& layer,
                                          const FeedOptions& options) override {
    SPEEDO_ASSIGN(std::unique_ptr<BatchReader> reader,
                  open_reader(layer, options, {on_bad_record_, meter_}));
    return std::unique_ptr<BatchFeed>(
        std::make_unique<PrefetchFeed>(std::move(reader), meter_, threads_, options.pinned_by));
  }
  FeedTotals totals() const override {
    return {std::chrono::nanoseconds(meter_->waited_ns.load()), meter_->host_bytes.load(),
            meter_->skipped_records.load()};
  }

 private:
  const int threads_;  // of each feed
  const OnBadRecord on_bad_record_;
  const std::shared_ptr<FeedMeter> meter_ = std::make_shared<FeedMeter>();
};

}  // namespace

std::unique_ptr<FeedFactory> make_feed_factory(int threads, OnBadRecord on_bad_record) {
  return std::make_unique<Factory>(threads, on_bad_record);
}

}  // namespace speedo
