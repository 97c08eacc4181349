// What masters and workers leave in the store and in files.
#include <cstring>

#include <speedo/base/assert.hpp>
#include <speedo/base/file.hpp>
#include <speedo/codec/codec.hpp>
#include <speedo/train/master_session.hpp>
#include <speedo/train/strategy.hpp>
#include <speedo/train/trainer.hpp>

#include "checkpoint/checkpoint_file.hpp"
#include "checkpoint/training_file.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/seeds.hpp"
#include "store/record_codec.hpp"
#include "support/generated_feeds.hpp"
#include "support/temp_dir.hpp"
#include "train/parts/part_record.hpp"
#include "train/replicas/step_header.hpp"

namespace speedo::fuzz {
namespace {

void add_manifests(std::vector<Seed>& seeds) {
  RecordManifest manifest;
  manifest.info = {.model = {1, 2}, .version = 3, .element_count = 300000, .state = "state"};
  manifest.chunks = {{1, kChunkBytes, 0}, {2, (300000 - kChunkElements) * sizeof(float), 0}};
  seeds.push_back({"record", encode_manifest(manifest)});
  manifest.servers = 2;
  manifest.slots = {0, 1};
  manifest.chunks[1].server = 1;
  seeds.push_back({"record", encode_manifest(manifest)});
  seeds.push_back({"record", encode_chunk_head({.version = 3, .chunk = 1, .checksum = 4})});
  seeds.push_back({"record", encode_blob_head("a blob") + "a blob"});
  for (const char* term : {"00000000000000000007", "18446744073709551615", "x", ""}) {
    for (const char* lease : {"00000000000000000007 host/3/4 x", "00000000000000000007 host/1/2",
                              "x", ""}) {
      const auto bytes = static_cast<unsigned>(std::strlen(term));
      seeds.push_back({"record", byte_text(bytes) + term + lease});
    }
  }
}

void add_codecs(std::vector<Seed>& seeds) {
  std::vector<float> values;
  for (int i = 0; i < 600; ++i) values.push_back(static_cast<float>(i * 37 % 101 - 50) / 8.0F);
  for (const char* text : {"none", "bf16", "fp16", "int8", "threshold:1", "topk:5", "onebit"}) {
    const CodecSpec spec = parse_codec(text).value();
    std::string bytes(encoded_bytes_max(spec, values.size()), '\0');
    const auto target = std::as_writable_bytes(std::span(bytes));
    bytes.resize(encode(spec, values, {}, target).value());
    seeds.push_back({"codec", byte_text(static_cast<unsigned>(spec.kind)) + byte_text(0) +
                                  byte_text(600 & 0xFF) + byte_text(600 >> 8) + bytes});
  }
}

void add_jobs(std::vector<Seed>& seeds) {
  JobSpec job{.solver_text = test::generated_solver(2, "base_lr: 0.1 lr_policy: \"fixed\"", true),
              .base = "/data"};
  job.stages[0].base_lr = 0.5F;
  job.stages.push_back({.kind = UpdateKind::kElastic, .moving_rate = 0.5F});
  seeds.push_back({"job", byte_text(0) + encode(job)});
  PartRecord parts;
  parts.publish_interval = 10;
  parts.layout.add({.layer = "ip1", .index = 0, .name = "", .shape = Shape{3, 4}});
  parts.layout.add({.layer = "ip1", .index = 1, .name = "bias", .shape = Shape{3}});
  seeds.push_back({"job", byte_text(1) + encode(parts)});
  seeds.push_back({"job", byte_text(2) + encode(StepHeader{.iteration = 5, .contributions = 3})});
}

void add_sessions(std::vector<Seed>& seeds) {
  for (std::size_t i = 0; i < strategy_registry().size(); ++i) {
    MasterConfig config;
    config.stages[0].strategy.name = strategy_registry()[i].name;
    config.stages[0].update = default_update(config.stages[0].strategy, 2);
    if (!check_schedule(config.stages[0])) continue;
    MasterSession session(config);
    seeds.push_back({"session", byte_text(static_cast<unsigned>(i)) + byte_text(0) +
                                    session.save()});
  }
}

void add_checkpoints(std::vector<Seed>& seeds) {
  const TempDir folder;
  record::CheckpointFile checkpoint;
  checkpoint.set_job("job");
  checkpoint.set_iteration(20);
  checkpoint.set_session(MasterSession(MasterConfig{}).save());
  checkpoint.mutable_model()->set_name("a_iter_20.caffemodel");
  checkpoint.mutable_state()->set_name("a_iter_20.solverstate");
  checkpoint.set_solver_type("SGD");
  SPEEDO_ASSERT(write_record(folder / "r", checkpoint));
  seeds.push_back({"checkpoint", read_file(folder / "r").value()});
  SPEEDO_ASSERT(write_training_file(folder / "t", TrainingId{1, 2}));
  seeds.push_back({"checkpoint", read_file(folder / "t").value()});
}

}  // namespace

std::vector<Seed> record_seeds() {
  std::vector<Seed> seeds;
  add_manifests(seeds);
  add_codecs(seeds);
  add_jobs(seeds);
  add_sessions(seeds);
  add_checkpoints(seeds);
  return seeds;
}

}  // namespace speedo::fuzz
