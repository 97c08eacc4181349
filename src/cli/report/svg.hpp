#pragma once

#include <array>
#include <string>

// What the pictures of this program have in common.
namespace speedo {

// Bright on dark pages, strong enough on light ones; lines beyond them repeat with dashes.
inline constexpr std::array<const char*, 7> kChartColours = {
    "#4477aa", "#ee6677", "#228833", "#b8960c", "#aa3377", "#2aa5c4", "#e0701a"};
inline constexpr std::array<const char*, 3> kChartDashes = {"", "7 4", "2 4"};

// "stroke=... stroke-dasharray=...", for a chart's line of that number.
std::string chart_stroke(std::size_t line);

// As text of an SVG or HTML element, or of an attribute.
std::string markup_escaped(const std::string& text);

// Elements of an SVG: words at a place, and a line from one place to another.
std::string svg_text(double x, double y, const char* classes, const std::string& words);
std::string svg_rule(double x1, double y1, double x2, double y2, const char* classes);

// Smaller steps of an axis are not told from none.
inline constexpr double kAxisStepMin = 1e-30;
// The smallest of 1, 2, 5, 10, 20, ... and their tenths, from kAxisStepMin on, that cuts `extent`
// into at most `parts`.
double axis_step(double extent, double parts);

}  // namespace speedo
