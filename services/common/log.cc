#include "services/common/log.h"

#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "spdlog/formatter.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace stagecoach {
namespace {

void AppendEscaped(spdlog::string_view_t text, spdlog::memory_buf_t& target) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      target.push_back('\\');
      target.push_back(c);
    } else if (byte < 0x20) {
      char code[8];
      std::snprintf(code, sizeof(code), "\\u%04x", byte);
      target.append(code, code + 6);
    } else {
      target.push_back(c);
    }
  }
}

void Append(const std::string& text, spdlog::memory_buf_t& target) {
  target.append(text.data(), text.data() + text.size());
}

// spdlog's patterns do not escape the message, so a quotation mark in it would break the line.
class JsonFormatter final : public spdlog::formatter {
 public:
  explicit JsonFormatter(std::string program) : program_(std::move(program)) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& target) override {
    const double unix_seconds =
        std::chrono::duration<double>(message.time.time_since_epoch()).count();
    char time[32];
    std::snprintf(time, sizeof(time), "%.6f", unix_seconds);
    const auto level = spdlog::level::to_string_view(message.level);
    Append(
        absl::StrCat("{\"time\":", time, ",\"level\":\"", std::string(level.data(), level.size()),
                     "\",\"program\":\"", program_, "\",\"message\":\""),
        target);
    AppendEscaped(message.payload, target);
    Append("\"}\n", target);
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>(program_);
  }

 private:
  const std::string program_;
};

}  // namespace

absl::Status SetUpLogging(const std::string& program, const std::string& format, bool verbose) {
  auto logger =
      std::make_shared<spdlog::logger>(program, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  if (format == "json") {
    logger->set_formatter(std::make_unique<JsonFormatter>(program));
  } else if (format == "text") {
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %L %n: %v");
  } else {
    return absl::InvalidArgumentError(absl::StrCat("--log-format=", format, ": want text or json"));
  }
  logger->set_level(verbose ? spdlog::level::debug : spdlog::level::info);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

}  // namespace stagecoach
