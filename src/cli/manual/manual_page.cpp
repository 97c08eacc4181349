#include "cli/manual/manual_page.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "cli/options/environment.hpp"
#include "cli/options/option_parser.hpp"

namespace speedo {

namespace {

// A hyphen is a minus, and a line never a request.
std::string escape(std::string_view text) {
  std::string result;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) result += "\\&";
    begins_line = c == '\n';
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

std::string page_name(const ProgramEntry& program) {
  std::string name(program.name);
  std::replace(name.begin(), name.end(), ' ', '-');
  return program.program == Program::kPlan ? name + "-plan" : name;
}

std::string range_of(const Option& option) {
  const ValueType& type = option.type;
  std::string range;
  if (type.kind == ValueKind::kWhole && (type.min != 0 || type.max != kCountMax)) {
    range = type.max == kCountMax ? fmt::format("At least {}.", type.min)
                                  : fmt::format("From {} to {}.", type.min, type.max);
  }
  if (!option.unit.empty()) {
    range += fmt::format("{}In {}.", range.empty() ? "" : " ", option.unit);
  }
  return range;
}

std::string heading_of(const Option& option) {
  std::string heading;
  for (const std::string_view name : names_of(option)) {
    heading += fmt::format("{}\\fB\\-\\-{}\\fR", heading.empty() ? "" : ", ", escape(name));
  }
  if (!option.type.label.empty()) {
    heading += fmt::format("{}\\fI{}\\fR",
                           option.type.kind == ValueKind::kOptionalText ? "" : " ",
                           escape(option.type.label));
  }
  return heading;
}

std::string entry_of_manual(const Option& option) {
  std::string text = ".TP\n";
  if (option.place != OptionPlace::kFlag) {
    return text + fmt::format("\\fI{}\\fR\n{}.\n", escape(option.name), escape(describe(option)));
  }
  text += heading_of(option) + "\n" + escape(describe(option)) + ".";
  if (const std::string range = range_of(option); !range.empty()) text += " " + range;
  if (option.required) text += " Required.";
  return text + "\n";
}

std::string options_section(Program program) {
  std::string text, group;
  for (const Option* option : options_of(program)) {
    if (option->place == OptionPlace::kFlag && option->group != group) {
      group = option->group;
      text += ".SS " + escape(group) + "\n";
    }
    text += entry_of_manual(*option);
  }
  return text;
}

std::string arguments_of_program(Program program) {
  std::string text;
  for (const Option* option : options_of(program)) {
    if (option->place == OptionPlace::kFlag) continue;
    text += fmt::format(" \\fI{}\\fR{}", escape(option->name),
                        option->place == OptionPlace::kArguments ? "..." : "");
  }
  return text;
}

std::string head(const std::string& name, std::string_view summary) {
  std::string title = name;
  std::transform(title.begin(), title.end(), title.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return fmt::format(".TH {} 1 \"\" \"{}\" \"SpeeDO\"\n.SH NAME\n{} \\- {}\n", title, version(),
                     escape(name), escape(summary));
}

}  // namespace

std::string manual_page(const ProgramEntry& program) {
  std::string page = head(page_name(program), program.summary);
  page += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR [\\fIoptions\\fR]{}\n", escape(program.name),
                      arguments_of_program(program.program));
  page += ".SH OPTIONS\n" + options_section(program.program);
  page += ".SH ENVIRONMENT\nEach option is a variable as well: \\fBSPEEDO_MAX_ITER\\fR for "
          "\\fB\\-\\-max\\-iter\\fR. An option on the command line goes before a variable, that "
          "before the configuration file.\n";
  page +=
      ".SH FILES\n.TP\n\\fIspeedo.toml\\fR\nThe configuration file, unless \\fB\\-\\-config\\fR "
      "or \\fBSPEEDO_CONFIG\\fR names another. That of the working directory must belong to the "
      "user or to root, and no other user may write it.\n";
  page += ".SH EXIT STATUS\n0: done. Other codes tell what was wrong: see the table in SpeeDO's "
          "README.\n";
  page += ".SH NOTES\n.nf\n" + escape(program.notes) + "\n.fi\n";
  page += ".SH SEE ALSO\n\\fBspeedo\\-run\\fR(1), \\fBspeedo\\-master\\fR(1), "
          "\\fBspeedo\\-worker\\fR(1), \\fBspeedo\\-config\\fR(1)\n";
  return page;
}

std::string overview_page() {
  std::string page = head("speedo", "Distributed training of Caffe nets");
  page += ".SH SYNOPSIS\n\\fBspeedo\\fR \\fIcommand\\fR [\\fIoptions\\fR]\n";
  page += ".SH DESCRIPTION\nA master decides who trains and what is merged when, workers compute, "
          "the shared weights live in Redis. Each program has a page of its own.\n";
  for (const ProgramEntry& entry : program_table()) {
    page += fmt::format(".TP\n\\fB{}\\fR(1)\n{}.\n", escape(page_name(entry)),
                        escape(entry.summary));
  }
  return page;
}

std::vector<ManualPage> manual_pages() {
  std::vector<ManualPage> pages = {{"speedo.1", overview_page()}};
  for (const ProgramEntry& entry : program_table()) {
    pages.push_back({page_name(entry) + ".1", manual_page(entry)});
  }
  return pages;
}

}  // namespace speedo
