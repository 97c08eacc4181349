#include "core/shown_names.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <speedo/base/remote_files.hpp>

namespace speedo {
namespace {

namespace protobuf = google::protobuf;

bool names_a_file(const protobuf::FieldDescriptor& field) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"source", "mean_file", "meanfile", "root_folder", "net", "train_net", "test_net",
       "weights"});
  return field.type() == protobuf::FieldDescriptor::TYPE_STRING &&
         std::ranges::find(kNames, field.name()) != kNames.end();
}

void show_name(const protobuf::FieldDescriptor& field, protobuf::Message& message) {
  const protobuf::Reflection& fields = *message.GetReflection();
  if (!field.is_repeated()) {
    return fields.SetString(&message, &field, shown_name(fields.GetString(message, &field)));
  }
  for (int i = 0; i < fields.FieldSize(message, &field); ++i) {
    const std::string name = fields.GetRepeatedString(message, &field, i);
    fields.SetRepeatedString(&message, &field, i, shown_name(name));
  }
}

void show_names_within(const protobuf::FieldDescriptor& field, protobuf::Message& message) {
  const protobuf::Reflection& fields = *message.GetReflection();
  if (!field.is_repeated()) return show_names(*fields.MutableMessage(&message, &field));
  for (int i = 0; i < fields.FieldSize(message, &field); ++i) {
    show_names(*fields.MutableRepeatedMessage(&message, &field, i));
  }
}

}  // namespace

void show_names(protobuf::Message& message) {
  const protobuf::Reflection& fields = *message.GetReflection();
  std::vector<const protobuf::FieldDescriptor*> set;
  fields.ListFields(message, &set);
  for (const protobuf::FieldDescriptor* const field : set) {
    if (field->cpp_type() == protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      show_names_within(*field, message);
    } else if (names_a_file(*field)) {
      show_name(*field, message);
    }
  }
}

}  // namespace speedo
