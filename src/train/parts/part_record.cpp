#include "train/parts/part_record.hpp"

#include <utility>
#include <vector>

#include "speedo.pb.h"

namespace speedo {

std::string parts_key() { return "parts"; }

std::string encode(const PartRecord& record) {
  record::Parts message;
  message.set_publish_interval(record.publish_interval);
  message.set_has_copies(record.has_copies);
  for (const FactorShape& shape : record.factor_shapes) {
    record::Parts::Factors& entry = *message.add_factors();
    entry.set_slot(shape.slot);
    entry.set_rows(shape.rows);
    entry.set_height(shape.height);
    entry.set_width(shape.width);
  }
  for (const ParameterSlot& slot : record.layout.slots()) {
    record::Parts::Slot& entry = *message.add_slot();
    entry.set_layer(slot.layer);
    entry.set_index(slot.index);
    entry.set_name(slot.name);
    for (const std::int64_t dim : slot.shape.dims()) entry.add_dim(dim);
    entry.set_lr_mult(slot.lr_mult);
    entry.set_decay_mult(slot.decay_mult);
    entry.set_is_statistic(slot.is_statistic);
  }
  return message.SerializeAsString();
}

Result<PartRecord> decode_parts(std::string_view bytes) {
  record::Parts message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Error{ErrorCode::kCorrupt, "the job's parts are not a speedo.record.Parts"};
  }
  PartRecord record;
  record.publish_interval = message.publish_interval();
  record.has_copies = message.has_copies();
  for (const record::Parts::Factors& entry : message.factors()) {
    const FactorShape shape{.slot = static_cast<std::size_t>(entry.slot()),
                            .rows = entry.rows(),
                            .height = entry.height(),
                            .width = entry.width()};
    record.factor_shapes.push_back(shape);
  }
  for (const record::Parts::Slot& entry : message.slot()) {
    ParameterSlot slot;
    slot.layer = entry.layer();
    slot.index = entry.index();
    slot.name = entry.name();
    SPEEDO_ASSIGN(slot.shape, Shape::create({entry.dim().begin(), entry.dim().end()}));
    slot.lr_mult = entry.lr_mult();
    slot.decay_mult = entry.decay_mult();
    slot.is_statistic = entry.is_statistic();
    record.layout.add(std::move(slot));
  }
  return record;
}

}  // namespace speedo
