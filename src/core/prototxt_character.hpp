#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace speedo {

// Where a place that protobuf's tokenizer names lies in the text: both numbers count from 0, and a
// tab goes on to the next multiple of eight columns.
std::size_t text_offset(std::string_view text, int line, int column);

// What is wrong with the character that `text` begins with: one beyond ASCII, outside of quotes and
// comments.
std::string describe_character(std::string_view text);

}  // namespace speedo
