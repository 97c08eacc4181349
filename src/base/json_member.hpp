#pragma once

#include <string>
#include <utility>

namespace speedo {

// Adds a member to an object that has none of this name, without the look for one, which goes
// through all members. `Json`: nlohmann's ordered one.
template <class Json, class Value>
void add_member(Json& object, std::string name, Value&& value) {
  auto& members = object.template get_ref<typename Json::object_t&>();
  members.emplace_back(std::move(name), Json(std::forward<Value>(value)));
}

}  // namespace speedo
