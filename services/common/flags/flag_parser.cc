#include "services/common/flags/flag_parser.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <string>

#include "services/common/flags/exit_code.h"

namespace stagecoach {

struct FlagParser::State {
  explicit State(const std::string& description) : app(description) {
    app.set_version_flag("--version", STAGECOACH_VERSION);
  }

  template <typename T>
  CLI::Option* AddNumber(const std::string& flag, T* target, const std::string& help, T lowest,
                         T highest) {
    // No comparison is true of what is no number, so the range lets it through.
    const auto is_number = [](const std::string& text) {
      const bool none = std::isnan(std::strtod(text.c_str(), nullptr));
      return none ? "Value " + text + " is no number" : std::string();
    };
    return app.add_option(flag, *target, help)
        ->check(CLI::Range(lowest, highest))
        ->check(is_number)
        ->capture_default_str();
  }

  CLI::App app;
};

FlagParser::FlagParser(const std::string& description)
    : state_(std::make_unique<State>(description)) {}

FlagParser::~FlagParser() = default;

void FlagParser::Text(const std::string& flag, std::string* target, const std::string& help,
                      const std::string& environment) {
  CLI::Option* const option = state_->app.add_option(flag, *target, help);
  if (!environment.empty()) option->envname(environment);
  if (!target->empty()) option->capture_default_str();
}

void FlagParser::Path(const std::string& flag, std::string* target, const std::string& help) {
  CLI::Option* const option = state_->app.add_option(flag, *target, help);
  option->check([](const std::string& given) {
    return given.empty() ? std::string("is empty; name it, or leave the flag out") : std::string();
  });
  if (!target->empty()) option->capture_default_str();
}

void FlagParser::OneOf(const std::string& flag, std::string* target, const std::string& help,
                       const std::vector<std::string>& choices) {
  state_->app.add_option(flag, *target, help)->check(CLI::IsMember(choices))->capture_default_str();
}

void FlagParser::Texts(const std::string& flag, std::vector<std::string>* target,
                       const std::string& help) {
  state_->app.add_option(flag, *target, help);
}

void FlagParser::Switch(const std::string& flag, bool* target, const std::string& help,
                        const std::string& environment) {
  CLI::Option* const option = state_->app.add_flag(flag, *target, help);
  if (!environment.empty()) option->envname(environment);
}

void FlagParser::Number(const std::string& flag, int* target, const std::string& help, int lowest,
                        int highest) {
  state_->AddNumber(flag, target, help, lowest, highest);
}

void FlagParser::Number(const std::string& flag, int64_t* target, const std::string& help,
                        int64_t lowest, int64_t highest) {
  state_->AddNumber(flag, target, help, lowest, highest);
}

void FlagParser::Number(const std::string& flag, double* target, const std::string& help,
                        double lowest, double highest, const std::string& environment) {
  CLI::Option* const option = state_->AddNumber(flag, target, help, lowest, highest);
  if (!environment.empty()) option->envname(environment);
}

std::optional<int> FlagParser::Parse(int argc, const char* const* argv) {
  try {
    state_->app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return state_->app.exit(error) == 0 ? 0 : kRefusedExitCode;
  }
  return std::nullopt;
}

}  // namespace stagecoach
