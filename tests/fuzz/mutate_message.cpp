#include "fuzz/mutate_message.hpp"

#include <random>
#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>

namespace speedo::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

class Mutation {
 public:
  Mutation(Message& root, std::uint32_t seed) : random_(seed) { collect(root); }

  void apply() {
    Message& message = *messages_[below(messages_.size())];
    const auto& descriptor = *message.GetDescriptor();
    if (descriptor.field_count() == 0) return;
    // Most of the time what is there is changed: fields that are not are many.
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    const FieldDescriptor* const field =
        fields.empty() || below(4) == 0
            ? descriptor.field(static_cast<int>(below(descriptor.field_count())))
            : fields[below(fields.size())];
    if (field->is_repeated()) {
      change_repeated(message, *field);
    } else if (below(6) == 0) {
      message.GetReflection()->ClearField(&message, field);
    } else {
      set(message, *field);
    }
  }

 private:
  template <class Number>
  std::size_t below(Number end) {
    const auto last = static_cast<std::size_t>(end) - 1;
    return std::uniform_int_distribution<std::size_t>(0, last)(random_);
  }

  void collect(Message& message) {
    messages_.push_back(&message);
    const Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
      for (int i = 0; i < count; ++i) collect(message, *field, i);
    }
  }
  void collect(Message& message, const FieldDescriptor& field, int index) {
    const Reflection& reflection = *message.GetReflection();
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      texts_.push_back(field.is_repeated() ? reflection.GetRepeatedString(message, &field, index)
                                           : reflection.GetString(message, &field));
    }
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return;
    collect(field.is_repeated() ? *reflection.MutableRepeatedMessage(&message, &field, index)
                                : *reflection.MutableMessage(&message, &field));
  }

  std::int64_t integer() {
    constexpr std::int64_t kEdges[] = {-1, 0, 1, 2, 3, 4, 7, 32, 255, 65535, 65536, 1 << 20,
                                       INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    return kEdges[below(std::size(kEdges))];
  }
  double real() {
    constexpr double kEdges[] = {0.0, 1.0, -1.0, 0.5, 1e-9, 1e9, 3e38, 1e300};
    return kEdges[below(std::size(kEdges))];
  }
  std::string text() {
    if (texts_.empty() || below(8) == 0) return std::string(below(3), 'x');
    return texts_[below(texts_.size())];
  }

  void change_repeated(Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    const int size = reflection.FieldSize(message, &field);
    if (size == 0 || below(3) == 0) return add(message, field);
    const auto index = static_cast<int>(below(size));
    switch (below(3)) {
      case 0:
        return reflection.RemoveLast(&message, &field);
      case 1:
        return reflection.SwapElements(&message, &field, index, static_cast<int>(below(size)));
      default:
        // The last one is made anew, in another place.
        reflection.SwapElements(&message, &field, index, size - 1);
        reflection.RemoveLast(&message, &field);
        return add(message, field);
    }
  }

  void add(Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return reflection.AddInt32(&message, &field, static_cast<std::int32_t>(integer()));
      case FieldDescriptor::CPPTYPE_INT64:
        return reflection.AddInt64(&message, &field, integer());
      case FieldDescriptor::CPPTYPE_UINT32:
        return reflection.AddUInt32(&message, &field, static_cast<std::uint32_t>(integer()));
      case FieldDescriptor::CPPTYPE_UINT64:
        return reflection.AddUInt64(&message, &field, static_cast<std::uint64_t>(integer()));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection.AddDouble(&message, &field, real());
      case FieldDescriptor::CPPTYPE_FLOAT:
        return reflection.AddFloat(&message, &field, static_cast<float>(real()));
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection.AddBool(&message, &field, below(2) == 0);
      case FieldDescriptor::CPPTYPE_ENUM:
        return reflection.AddEnum(&message, &field, some_value(field));
      case FieldDescriptor::CPPTYPE_STRING:
        return reflection.AddString(&message, &field, text());
      case FieldDescriptor::CPPTYPE_MESSAGE: {
        const int size = reflection.FieldSize(message, &field);
        Message& added = *reflection.AddMessage(&message, &field);
        if (size == 0) return;
        const auto index = static_cast<int>(below(size));
        added.CopyFrom(reflection.GetRepeatedMessage(message, &field, index));
        return;
      }
    }
  }

  void set(Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return reflection.SetInt32(&message, &field, static_cast<std::int32_t>(integer()));
      case FieldDescriptor::CPPTYPE_INT64:
        return reflection.SetInt64(&message, &field, integer());
      case FieldDescriptor::CPPTYPE_UINT32:
        return reflection.SetUInt32(&message, &field, static_cast<std::uint32_t>(integer()));
      case FieldDescriptor::CPPTYPE_UINT64:
        return reflection.SetUInt64(&message, &field, static_cast<std::uint64_t>(integer()));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection.SetDouble(&message, &field, real());
      case FieldDescriptor::CPPTYPE_FLOAT:
        return reflection.SetFloat(&message, &field, static_cast<float>(real()));
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection.SetBool(&message, &field, below(2) == 0);
      case FieldDescriptor::CPPTYPE_ENUM:
        return reflection.SetEnum(&message, &field, some_value(field));
      case FieldDescriptor::CPPTYPE_STRING:
        return reflection.SetString(&message, &field, text());
      case FieldDescriptor::CPPTYPE_MESSAGE:
        reflection.MutableMessage(&message, &field);
        return;
    }
  }

  const google::protobuf::EnumValueDescriptor* some_value(const FieldDescriptor& field) {
    return field.enum_type()->value(static_cast<int>(below(field.enum_type()->value_count())));
  }

  std::mt19937 random_;
  std::vector<Message*> messages_;
  std::vector<std::string> texts_;
};

}  // namespace

void mutate(google::protobuf::Message& message, std::uint32_t seed) {
  Mutation(message, seed).apply();
}

}  // namespace speedo::fuzz
