#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "plan/data/text.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/weight_options.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/trained/sampler.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {
namespace {

struct LoadedSampler {
  std::string weights;  // where they came from
  std::unique_ptr<Sampler> sampler;
};

// Of the job that trained the weights; null: its tokens are bytes.
absl::StatusOr<std::unique_ptr<const Tokenizer>> TokenizerOf(const GenerateOptions& options,
                                                             const JobSpec& spec) {
  const bool text = spec.data.kind == TextData::kKind;
  const std::string of_job = text ? spec.data.As<TextData>().tokenizer : "";
  const std::string& path = options.tokenizer.empty() ? of_job : options.tokenizer;
  if (path.empty()) return nullptr;
  absl::StatusOr<std::unique_ptr<const Tokenizer>> tokenizer =
      Tokenizer::Load(*PosixFileSystem(), path);
  if (tokenizer.ok() && (*tokenizer)->end() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": has no end id (eos)"));
  }
  if (tokenizer.ok() || !options.tokenizer.empty()) return tokenizer;
  return absl::Status(tokenizer.status().code(),
                      absl::StrCat("data.text.tokenizer: ", tokenizer.status().message(),
                                   "; --tokenizer names it on this machine"));
}

absl::StatusOr<LoadedSampler> LoadSampler(const GenerateOptions& options,
                                          const CommandContext& context) {
  ASSIGN_OR_RETURN(const FoundWeights found, FindWeights(options.weights, context));
  ASSIGN_OR_RETURN(std::unique_ptr<const Tokenizer> tokenizer, TokenizerOf(options, found.spec));
  ASSIGN_OR_RETURN(std::unique_ptr<Sampler> sampler,
                   Sampler::Load(found.source.weights_file(), found.spec,
                                 MakeBackendHere(options.weights), std::move(tokenizer)));
  return LoadedSampler{found.source.name(), std::move(sampler)};
}

// On one line. The text's bytes need not be UTF-8; what is not becomes U+FFFD.
std::string GeneratedJson(const GenerateOptions& options, const std::string& weights,
                          const std::string& text, int64_t tokens) {
  const nlohmann::ordered_json answer = {
      {"weights", weights}, {"prompt", options.prompt}, {"text", text},
      {"tokens", tokens},   {"seed", options.seed},     {"temperature", options.temperature}};
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
    context.console->PrintLine(
        GeneratedJson(options, loaded->weights, text, loaded->sampler->generated()));
  }
  return context.stop->requested() ? kExitInterrupted : kExitSuccess;
}

}  // namespace stagecoach
