#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "services/cli/commands/commands.h"
#include "services/cli/generate/sampler.h"
#include "services/cli/generate/weight_source.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/spec/spec_reader.h"

namespace stagecoach {
namespace {

// One folder may hold the weights of several jobs.
void NoteChoice(const WeightSource& source, Console& console) {
  if (source.passed_over().empty()) return;
  console.Note(absl::StrCat("weights  ", source.name(),
                            " (exported last); for others name their folder:\n  ",
                            absl::StrJoin(source.passed_over(), "\n  ")));
}

struct LoadedSampler {
  std::string weights;  // where they came from
  std::unique_ptr<Sampler> sampler;
};

absl::StatusOr<LoadedSampler> LoadSampler(const GenerateOptions& options,
                                          const CommandContext& context) {
  ASSIGN_OR_RETURN(
      const WeightSource source,
      WeightSource::Find({.source = options.source,
                          .job_file = options.job_file,
                          .step = options.step,
                          .connect = [&context] { return context.connect(context.client); }}));
  NoteChoice(source, *context.console);
  // The configuration beside the weights is the job spec that they were trained by.
  ASSIGN_OR_RETURN(const SpecFile spec_file, ReadSpecFile(source.config_file()));
  ASSIGN_OR_RETURN(const JobSpec spec, ValidateSpecFile(spec_file));
  BackendOptions backend;
  backend.threads = static_cast<int>(
      options.threads > 0 ? options.threads
                          : std::max<int64_t>(1, std::thread::hardware_concurrency()));
  ASSIGN_OR_RETURN(std::unique_ptr<Sampler> sampler,
                   Sampler::Load(source.weights_file(), spec, MakeCpuBackend(backend)));
  return LoadedSampler{source.name(), std::move(sampler)};
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
