#include <nlohmann/json.hpp>
#include <utility>

#include "base/errors/status.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/weight_options.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/trained/sampler.h"

namespace stagecoach {
namespace {

struct LoadedSampler {
  std::string weights;  // where they came from
  std::unique_ptr<Sampler> sampler;
};

absl::StatusOr<LoadedSampler> LoadSampler(const GenerateOptions& options,
                                          const CommandContext& context) {
  ASSIGN_OR_RETURN(const FoundWeights found, FindWeights(options.weights, context));
  ASSIGN_OR_RETURN(
      std::unique_ptr<Sampler> sampler,
      Sampler::Load(found.source.weights_file(), found.spec, MakeBackendHere(options.weights)));
  return LoadedSampler{found.source.name(), std::move(sampler)};
}

// On one line. The text's bytes need not be UTF-8; what is not becomes U+FFFD.
std::string GeneratedJson(const GenerateOptions& options, const std::string& weights,
                          const std::string& text) {
  const nlohmann::ordered_json answer = {
      {"weights", weights},    {"prompt", options.prompt}, {"text", text},
      {"tokens", text.size()}, {"seed", options.seed},     {"temperature", options.temperature}};
  return answer.dump(-1, ' ', /*ensure_ascii=*/false,
                     nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

int RunGenerate(const GenerateOptions& options, CommandContext& context) {
  const absl::StatusOr<LoadedSampler> loaded = LoadSampler(options, context);
  if (!loaded.ok()) return context.console->Fail(loaded.status());
  const bool as_it_comes = context.output == OutputFormat::kTable;
  if (as_it_comes) context.console->Print(options.prompt);
  const SamplingOptions sampling{
      .tokens = options.tokens, .temperature = options.temperature, .seed = options.seed};
  std::string text;
  const auto on_byte = [&](char byte) {
    text += byte;
    if (as_it_comes) context.console->Print(std::string(1, byte));
    return !context.stop->requested();
  };
  const absl::Status status = loaded->sampler->Generate(options.prompt, sampling, on_byte);
  if (as_it_comes) context.console->Print("\n");
  if (!status.ok()) return context.console->Fail(status);
  if (!as_it_comes) {
    context.console->PrintLine(GeneratedJson(options, loaded->weights, text));
  }
  return context.stop->requested() ? kExitInterrupted : kExitSuccess;
}

}  // namespace stagecoach
