#include "base/log.hpp"

#include <memory>
#include <mutex>
#include <utility>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>

#include "base/log_lines.hpp"
#include "base/patient_output.hpp"
#include "base/shown_text.hpp"

namespace speedo {

namespace {

// Lines go to standard_error(), which makes nobody wait for ever.
class StandardErrorSink : public spdlog::sinks::sink {
 public:
  void log(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    {
      const std::lock_guard lock(mutex_);
      formatter_->format(message, line);
    }
    standard_error().write({line.data(), line.size()});
  }
  void flush() override {}
  void set_pattern(const std::string& pattern) override {
    set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern));
  }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    const std::lock_guard lock(mutex_);
    formatter_ = std::move(formatter);
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<spdlog::formatter> formatter_ = std::make_unique<spdlog::pattern_formatter>();
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
  auto logger =
      std::make_shared<spdlog::logger>("speedo", std::make_shared<StandardErrorSink>());
  const std::string date = format == LogFormat::kGlog ? "%L%m%d" : "%L%Y%m%d";
  logger->set_pattern(date + " %H:%M:%S.%f %t %s:%#] %v");
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

}  // namespace speedo
