#include "base/log.hpp"

#include <memory>
#include <utility>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/log_lines.hpp"
#include "base/shown_text.hpp"

namespace speedo {

namespace {

// Another sink with a call before and after each line.
class HookedSink : public spdlog::sinks::sink {
 public:
  HookedSink(spdlog::sink_ptr target, std::function<void()> before, std::function<void()> after)
      : target_(std::move(target)), before_(std::move(before)), after_(std::move(after)) {}

  void log(const spdlog::details::log_msg& message) override {
    before_();
    target_->log(message);
    target_->flush();
    after_();
  }
  void flush() override { target_->flush(); }
  void set_pattern(const std::string& pattern) override { target_->set_pattern(pattern); }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    target_->set_formatter(std::move(formatter));
  }

 private:
  spdlog::sink_ptr target_;
  std::function<void()> before_, after_;
};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kNothing: return spdlog::level::off;
  }
  return spdlog::level::info;
}

}  // namespace

void set_up_logging(LogFormat format) {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>("speedo", std::move(sink));
  const std::string date = format == LogFormat::kGlog ? "%L%m%d" : "%L%Y%m%d";
  logger->set_pattern(date + " %H:%M:%S.%f %t %s:%#] %v");
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void set_log_level(LogLevel level) {
  spdlog::default_logger_raw()->set_level(to_spdlog(level));
}

bool logs(LogLevel level) {
  return spdlog::default_logger_raw()->should_log(to_spdlog(level));
}

// Whoever named what the text speaks of, as the layers of a net, does not move the cursor or begin
// a line.
void write_log(LogLevel level, const char* file, int line, const std::string& text) {
  spdlog::default_logger_raw()->log(spdlog::source_loc{file, line, ""}, to_spdlog(level),
                                    shown_text(text, "\t"));
}

void write_log_lines(LogLevel level, const char* file, int line, const std::string& text) {
  spdlog::default_logger_raw()->log(spdlog::source_loc{file, line, ""}, to_spdlog(level),
                                    shown_text(text, "\t\n"));
}

void set_log_hooks(std::function<void()> before, std::function<void()> after) {
  for (spdlog::sink_ptr& sink : spdlog::default_logger_raw()->sinks()) {
    sink = std::make_shared<HookedSink>(sink, before, after);
  }
}

}  // namespace speedo
