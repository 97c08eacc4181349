#include "cli/report/svg.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"

namespace speedo {
namespace {

// U+FFFE and U+FFFF are characters of UTF-8, and none of XML.
std::string without_noncharacters(std::string text) {
  for (std::size_t i = text.find("\xEF\xBF"); i != std::string::npos && i + 2 < text.size();
       i = text.find("\xEF\xBF", i + 3)) {
    if (text[i + 2] == '\xBE' || text[i + 2] == '\xBF') text[i + 2] = '\xBD';
  }
  return text;
}

}  // namespace

std::string chart_stroke(std::size_t line) {
  const char* dash = kChartDashes[line / kChartColours.size() % kChartDashes.size()];
  std::string style = fmt::format("stroke=\"{}\"", kChartColours[line % kChartColours.size()]);
  if (*dash != '\0') style += fmt::format(" stroke-dasharray=\"{}\"", dash);
  return style;
}

std::string markup_escaped(const std::string& text) {
  std::string safe;
  for (const char c : without_noncharacters(utf8_text<nlohmann::json>(text))) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return safe;
}

std::string svg_text(double x, double y, const char* classes, const std::string& words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, classes,
                     markup_escaped(words));
}

std::string svg_rule(double x1, double y1, double x2, double y2, const char* classes) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
      y2, classes);
}

double axis_step(double extent, double parts) {
  const double raw = std::max(extent / parts, kAxisStepMin);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * (1.0 - 1e-9)) return factor * power;
  }
  return 10.0 * power;
}

}  // namespace speedo
