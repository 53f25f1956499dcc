#include "services/common/observe/log.h"

#include <spdlog/formatter.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

constexpr size_t kRingLines = 4096;

thread_local const LogScope* current_scope = nullptr;

double UnixSeconds(const spdlog::details::log_msg& message) {
  return std::chrono::duration<double>(message.time.time_since_epoch()).count();
}

// What base/utf8.h shows of the text: a line has to be JSON for whoever reads it, and may be shown
// by a terminal.
void AppendEscaped(std::string_view text, spdlog::memory_buf_t& target) {
  for (const char c : ShownText(text)) {
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
    char time[32];
    std::snprintf(time, sizeof(time), "%.6f", UnixSeconds(message));
    const auto level = spdlog::level::to_string_view(message.level);
    Append(
        absl::StrCat("{\"time\":", time, ",\"level\":\"", std::string(level.data(), level.size()),
                     "\",\"program\":\"", program_, "\",\"message\":\""),
        target);
    AppendEscaped({message.payload.data(), message.payload.size()}, target);
    Append("\"", target);
    if (const LogScope* scope = LogScope::Current()) {
      Append(",\"job_id\":\"", target);
      AppendEscaped(scope->job_id(), target);
      Append("\"", target);
      if (scope->step().has_value()) Append(absl::StrCat(",\"step\":", *scope->step()), target);
    }
    Append("}\n", target);
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>(program_);
  }

 private:
  const std::string program_;
};

// "job a step 17: " before the text of a line that has a scope.
class ScopeFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg&, const std::tm&,
              spdlog::memory_buf_t& target) override {
    const LogScope* scope = LogScope::Current();
    if (scope == nullptr) return;
    Append(absl::StrCat("job ", ShownName(scope->job_id())), target);
    if (scope->step().has_value()) Append(absl::StrCat(" step ", *scope->step()), target);
    Append(": ", target);
  }

  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<ScopeFlag>();
  }
};

// What others sent, as a stage's error, is part of messages: no line of it may look like one of
// ours.
class MessageFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& target) override {
    const std::string_view payload(message.payload.data(), message.payload.size());
    Append(absl::StrReplaceAll(ShownText(payload), {{"\n", "\n  | "}}), target);
  }

  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<MessageFlag>();
  }
};

const char* LevelName(spdlog::level::level_enum level) {
  if (level <= spdlog::level::debug) return "debug";
  if (level == spdlog::level::info) return "info";
  return level == spdlog::level::warn ? "warning" : "error";
}

// Sinks run on the thread that logs, so its scope is at hand.
class RingSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    LogEntry entry;
    entry.unix_seconds = UnixSeconds(message);
    entry.level = LevelName(message.level);
    entry.message.assign(message.payload.data(), message.payload.size());
    if (const LogScope* scope = LogScope::Current()) {
      entry.job_id = scope->job_id();
      entry.step = scope->step();
    }
    ProcessLogRing()->Append(std::move(entry));
  }
  void flush_() override {}
};

}  // namespace

LogRing* ProcessLogRing() {
  static LogRing* const ring = new LogRing(kRingLines);
  return ring;
}

LogScope::LogScope(std::string job_id, std::optional<uint64_t> step)
    : job_id_(std::move(job_id)), step_(step), outer_(current_scope) {
  current_scope = this;
}

LogScope::~LogScope() { current_scope = outer_; }

const LogScope* LogScope::Current() { return current_scope; }

absl::Status SetUpLogging(const std::string& program, const std::string& format, bool verbose) {
  const std::vector<spdlog::sink_ptr> sinks = {std::make_shared<spdlog::sinks::stderr_sink_mt>(),
                                               std::make_shared<RingSink>()};
  auto logger = std::make_shared<spdlog::logger>(program, sinks.begin(), sinks.end());
  if (format == "json") {
    logger->set_formatter(std::make_unique<JsonFormatter>(program));
  } else if (format == "text") {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<ScopeFlag>('*').add_flag<MessageFlag>('~').set_pattern(
        "%Y-%m-%dT%H:%M:%S.%e %L %n: %*%~");
    logger->set_formatter(std::move(formatter));
  } else {
    return absl::InvalidArgumentError(absl::StrCat("--log-format=", format, ": want text or json"));
  }
  logger->set_level(verbose ? spdlog::level::debug : spdlog::level::info);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

}  // namespace stagecoach
