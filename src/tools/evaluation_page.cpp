// The page of an evaluation: figures, two curves, a bar for each class, the confusion matrix.

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "cli/report/line_chart.hpp"
#include "cli/report/svg.hpp"
#include "tools/evaluation_report.hpp"

namespace speedo {

namespace {

constexpr std::int64_t kBarsMax = 60, kHeatClassesMax = 60;
constexpr std::size_t kMistakeRows = 40;
constexpr int kReliabilityBins = 10;

constexpr const char* kPageHead =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>Evaluation</title>\n<style>\n"
    "body { font: 15px/1.45 system-ui, sans-serif; color: #1c2024; background: #f4f5f7;"
    " margin: 0 auto; max-width: 1000px; padding: 24px 16px 64px; }\n"
    "h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 32px 0 10px; }\n"
    ".soft { color: #5c646c; overflow-wrap: anywhere; }\n"
    ".tiles { display: flex; flex-wrap: wrap; gap: 10px; margin-top: 18px; }\n"
    ".tile, .card { background: #fff; border: 1px solid #e1e4e8; border-radius: 8px;"
    " padding: 12px 16px; }\n"
    ".tile b { display: block; font-size: 22px; font-weight: 600; }\n"
    ".card { overflow-x: auto; } svg { max-width: 100%; height: auto; display: block; }\n"
    "table { border-collapse: collapse; width: 100%; }\n"
    "th, td { text-align: right; padding: 4px 10px; border-bottom: 1px solid #eceef0;"
    " font-variant-numeric: tabular-nums; }\n"
    "th:first-child, td:first-child, .word { text-align: left; }\n"
    ".bar { display: inline-block; height: 11px; background: #4477aa; border-radius: 2px; }\n"
    "</style>\n</head>\n<body>\n";

std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.2f} %", 100.0 * *share) : "&ndash;";
}

std::string tile(const std::string& value, const std::string& what) {
  return fmt::format("<div class=\"tile\"><b>{}</b>{}</div>\n", value, what);
}

std::string tiles(const Evaluation& all) {
  std::string text = "<div class=\"tiles\">\n";
  text += tile(fmt::format("{}", all.samples()), "samples");
  for (std::size_t i = 0; i < all.options().top_k.size(); ++i) {
    text += tile(percent(all.top_k_share(i)), fmt::format("top-{}", all.options().top_k[i]));
  }
  text += tile(percent(all.mean_precision()), "mean precision");
  text += tile(percent(all.mean_recall()), "mean recall");
  text += tile(fmt::format("{:.4f}", all.mean_f1()), "mean F1");
  text += tile(fmt::format("{:.4f}", all.calibration_error()), "calibration error");
  return text + "</div>\n";
}

// Of the answers with at least some confidence: how many are right, and how many of all samples
// are found with them.
LineChart precision_chart(const Evaluation& all) {
  ChartLine line{"answers by falling confidence", {}};
  std::int64_t answered = 0, hits = 0;
  const auto& bins = all.confidence();
  for (std::size_t i = bins.size(); i-- > 0;) {
    if (bins[i].samples == 0) continue;
    answered += bins[i].samples;
    hits += bins[i].hits;
    line.points.push_back({static_cast<double>(hits) / static_cast<double>(all.samples()),
                           static_cast<double>(hits) / static_cast<double>(answered)});
  }
  return {"Precision and recall", "recall", "precision", {line}, ChartRange{}, ChartRange{}, false};
}

LineChart reliability_chart(const Evaluation& all) {
  ChartLine line{"share that is right, in tenths of confidence", {}};
  for (const ConfidenceBin& bin : all.confidence_in(kReliabilityBins)) {
    if (bin.samples == 0) continue;
    const auto samples = static_cast<double>(bin.samples);
    line.points.push_back({bin.confidence_sum / samples, static_cast<double>(bin.hits) / samples});
  }
  return {"Calibration", "mean confidence", "share right", {line},
          ChartRange{},  ChartRange{},      true};
}

// Those with the lowest F1 first if there are too many to show.
std::vector<std::int64_t> shown_classes(const Evaluation& all) {
  std::vector<std::int64_t> numbers(all.classes().size());
  std::iota(numbers.begin(), numbers.end(), 0);
  if (all.options().classes <= kBarsMax) return numbers;
  const auto f1 = [&](std::int64_t number) {
    return all.classes()[static_cast<std::size_t>(number)].f1().value_or(2.0);
  };
  std::stable_sort(numbers.begin(), numbers.end(),
                   [&](std::int64_t a, std::int64_t b) { return f1(a) < f1(b); });
  numbers.resize(kBarsMax);
  return numbers;
}

std::string class_table(const EvaluationReport& report) {
  std::string text =
      "<div class=\"card\"><table>\n<tr><th>class</th><th>samples</th><th>precision</th>"
      "<th>recall</th><th>F1</th><th class=\"word\" style=\"width: 40%\"></th></tr>\n";
  for (const std::int64_t number : shown_classes(report.evaluation)) {
    const ClassScores& each = report.evaluation.classes()[static_cast<std::size_t>(number)];
    const std::optional<double> f1 = each.f1();
    text += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td class=\"word\"><span class=\"bar\" style=\"width: {:.1f}%\"></span></td></tr>\n",
        markup_escaped(report.label_of(number)), each.samples, percent(each.precision()),
        percent(each.recall()), f1 ? fmt::format("{:.4f}", *f1) : "&ndash;",
        100.0 * f1.value_or(0.0));
  }
  return text + "</table></div>\n";
}

std::string mistake_table(const EvaluationReport& report) {
  std::string text =
      "<div class=\"card\"><table>\n<tr><th>of class</th><th class=\"word\">taken for</th>"
      "<th>samples</th></tr>\n";
  for (const Mistake& mistake : frequent_mistakes(report.evaluation, kMistakeRows)) {
    text += fmt::format("<tr><td>{}</td><td class=\"word\">{}</td><td>{}</td></tr>\n",
                        markup_escaped(report.label_of(mistake.truth)),
                        markup_escaped(report.label_of(mistake.answer)), mistake.count);
  }
  return text + "</table></div>\n";
}

std::string short_label(const std::string& label) {
  constexpr std::size_t kLettersMax = 18;
  if (label.size() <= kLettersMax) return label;
  std::size_t end = kLettersMax;
  while (end > 0 && (static_cast<unsigned char>(label[end]) & 0xC0U) == 0x80U) --end;  // UTF-8
  return label.substr(0, end) + "...";
}

// A row for each true class, a column for each answer; darker where more of the row's samples are.
class HeatMap {
 public:
  explicit HeatMap(const EvaluationReport& report)
      : report_(report),
        count_(report.evaluation.options().classes),
        cell_(std::clamp(620.0 / static_cast<double>(count_), 9.0, 44.0)) {}

  std::string draw() {
    const double side = kHeatLeft + cell_ * static_cast<double>(count_);
    const double width = side + kHeatRight, height = side - kHeatLeft + kHeatTop + 12.0;
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" font-family=\"sans-serif\" "
        "font-size=\"{2:.0f}\"><title>Confusion matrix</title>\n",
        width, height, std::clamp(cell_ * 0.42, 7.0, 13.0));
    for (std::int64_t i = 0; i < count_; ++i) names(i);
    for (std::int64_t row = 0; row < count_; ++row) {
      for (std::int64_t column = 0; column < count_; ++column) cell(row, column);
    }
    return svg_ + "</svg>\n";
  }

 private:
  static constexpr double kHeatLeft = 150.0, kHeatRight = 80.0, kHeatTop = 120.0;

  double at(std::int64_t index) const { return cell_ * static_cast<double>(index); }

  void names(std::int64_t index) {
    const std::string label = markup_escaped(short_label(report_.label_of(index)));
    const double middle = at(index) + cell_ * 0.64;
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                        kHeatLeft - 6.0, kHeatTop + middle, label);
    svg_ += fmt::format("<text transform=\"translate({:.1f} {:.1f}) rotate(-60)\">{}</text>\n",
                        kHeatLeft + middle, kHeatTop - 6.0, label);
  }

  void cell(std::int64_t row, std::int64_t column) {
    const auto& confusions = report_.evaluation.confusions();
    const auto found = confusions.find({row, column});
    const std::int64_t count = found == confusions.end() ? 0 : found->second;
    const std::int64_t of = report_.evaluation.classes()[static_cast<std::size_t>(row)].samples;
    const double part = of == 0 ? 0.0 : static_cast<double>(count) / static_cast<double>(of);
    // A single mistake of many can be seen, too.
    const double ink = count == 0 ? 0.0 : 0.08 + 0.92 * std::sqrt(part);
    const double x = kHeatLeft + at(column), y = kHeatTop + at(row);
    svg_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
        "fill-opacity=\"{:.3f}\" stroke=\"#e3e6e9\"><title>{} taken for {}: {}</title></rect>\n",
        x, y, cell_, cell_, row == column ? "#228833" : "#cc3344", ink,
        markup_escaped(report_.label_of(row)), markup_escaped(report_.label_of(column)), count);
    if (count == 0 || cell_ < 26.0) return;
    svg_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"{}\">{}</text>\n",
        x + cell_ / 2.0, y + cell_ * 0.64, ink > 0.6 ? "#ffffff" : "#1c2024", count);
  }

  const EvaluationReport& report_;
  const std::int64_t count_;
  const double cell_;
  std::string svg_;
};

}  // namespace

std::string to_page(const EvaluationReport& report) {
  const Evaluation& all = report.evaluation;
  std::string page = kPageHead;
  page += fmt::format("<h1>Evaluation</h1>\n<div class=\"soft\">{} with {}</div>\n",
                      markup_escaped(report.model), markup_escaped(report.weights));
  page += tiles(all);
  if (all.samples() > 0) {
    page += "<h2>Confidence</h2>\n<div class=\"card\">" + to_svg(precision_chart(all)) +
            "</div>\n<div class=\"card\" style=\"margin-top: 10px\">" +
            to_svg(reliability_chart(all)) + "</div>\n";
  }
  const bool is_cut = all.options().classes > kBarsMax;
  page += is_cut ? fmt::format("<h2>The {} classes with the lowest F1</h2>\n", kBarsMax)
                 : "<h2>Classes</h2>\n";
  page += class_table(report);
  if (all.options().classes <= kHeatClassesMax) {
    page += "<h2>Confusion: rows are true classes, columns answers</h2>\n<div class=\"card\">" +
            HeatMap(report).draw() + "</div>\n";
  }
  page += "<h2>Most frequent mistakes</h2>\n" + mistake_table(report);
  return page + "</body>\n</html>\n";
}

}  // namespace speedo
