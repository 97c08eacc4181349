#include "data/feed_factory.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <speedo/base/digest.hpp>
#include <speedo/base/file.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/base/random.hpp>

#include "caffe.pb.h"
#include "data/datum_batch_reader.hpp"
#include "data/hdf5/hdf5_batch_reader.hpp"
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
std::uint64_t first_record(const caffe::DataParameter& data, const FeedOptions& options,
                           std::uint64_t seed, std::int64_t size) {
  if (options.start_fraction > 0.0) {
    return static_cast<std::uint64_t>(options.start_fraction * static_cast<double>(size));
  }
  if (data.rand_skip() == 0) return 0;
  constexpr std::uint64_t kSkipStream = 0x736b6970;  // apart from the streams of mirrors and crops
  return Random::derive(seed, {kSkipStream, kSkipStream}).below(data.rand_skip());
}

Result<void> check_batch_size(std::uint32_t batch_size) {
  if (batch_size == 0 || batch_size > kBlobElementsMax) {
    return bad_field(fmt::format("batch_size is {}, but must be between 1 and {}", batch_size,
                                 kBlobElementsMax));
  }
  return {};
}

ReaderResult open_records(const caffe::LayerParameter& layer, const FeedOptions& options) {
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
  DatumBatchReader::Options reader;
  reader.batch_size = data.batch_size();
  reader.with_labels = options.top_count > 1;
  reader.seed = layer_seed(layer, options.seed);
  reader.first_record = first_record(data, options, reader.seed, source->size());
  return DatumBatchReader::create(std::move(source), std::move(transformer), reader);
}

ReaderResult open_hdf5(const caffe::LayerParameter& layer, const FeedOptions& options) {
  const caffe::HDF5DataParameter& data = layer.hdf5_data_param();
  if (data.source().empty()) return bad_field("hdf5_data_param has no source");
  SPEEDO_TRY(check_batch_size(data.batch_size()));
  if (layer.has_transform_param()) {
    return bad_field("HDF5 data are not transformed: remove transform_param");
  }
  Hdf5BatchReader::Options reader;
  reader.list = resolve_path(data.source(), options.base);
  reader.base = options.base;
  reader.datasets.assign(layer.top().begin(), layer.top().end());
  reader.batch_size = data.batch_size();
  reader.shuffle = data.shuffle();
  reader.seed = layer_seed(layer, options.seed);
  reader.start_fraction = options.start_fraction;
  return Hdf5BatchReader::create(reader);
}

ReaderResult open_reader(const caffe::LayerParameter& layer, const FeedOptions& options) {
  if (layer.type() == "Data") return open_records(layer, options);
  if (layer.type() == "HDF5Data") return open_hdf5(layer, options);
  return bad_field(fmt::format("layer type {} reads no data source", layer.type()));
}

class Factory : public FeedFactory {
 public:
  explicit Factory(int threads) : threads_(std::min(threads, kDecodeThreadsMax)) {}
  Result<std::unique_ptr<BatchFeed>> open(const caffe::LayerParameter& layer,
                                          const FeedOptions& options) override {
    SPEEDO_ASSIGN(std::unique_ptr<BatchReader> reader, open_reader(layer, options));
    return std::unique_ptr<BatchFeed>(
        std::make_unique<PrefetchFeed>(std::move(reader), meter_, threads_));
  }
  FeedTotals totals() const override {
    return {std::chrono::nanoseconds(meter_->waited_ns.load()), meter_->host_bytes.load()};
  }

 private:
  const int threads_;  // of each feed
  const std::shared_ptr<FeedMeter> meter_ = std::make_shared<FeedMeter>();
};

}  // namespace

std::unique_ptr<FeedFactory> make_feed_factory(int threads) {
  return std::make_unique<Factory>(threads);
}

}  // namespace speedo
