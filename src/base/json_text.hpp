#pragma once

#include <string>

namespace speedo {

// A JSON value as text, on one line, or indented by so many blanks a level. Names of files, layers
// and labels are any bytes: what is not UTF-8 in them is replaced, where dump() alone would throw.
// `Json`: nlohmann's.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// A text of any bytes as UTF-8, with the same in place of what is none.
template <class Json>
std::string utf8_text(const std::string& text) {
  return Json::parse(json_text(Json(text))).template get<std::string>();
}

}  // namespace speedo
