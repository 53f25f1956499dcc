#include <algorithm>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "services/cli/commands/commands.h"
#include "services/cli/generate/sampler.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/spec/spec_reader.h"

namespace stagecoach {
namespace {

struct WeightFiles {
  std::string weights, config;
};

absl::StatusOr<WeightFiles> FindWeights(const std::string& path) {
  std::error_code error;
  std::filesystem::path weights(path);
  if (std::filesystem::is_directory(weights, error)) weights /= "model.safetensors";
  if (!std::filesystem::exists(weights, error)) {
    return absl::NotFoundError(absl::StrCat("--weights: no file ", weights.string()));
  }
  return WeightFiles{weights.string(), (weights.parent_path() / "config.json").string()};
}

absl::StatusOr<std::unique_ptr<Sampler>> LoadSampler(const GenerateOptions& options) {
  ASSIGN_OR_RETURN(const WeightFiles files, FindWeights(options.weights));
  // The configuration beside the weights is the job spec that they were trained by.
  ASSIGN_OR_RETURN(const SpecFile spec_file, ReadSpecFile(files.config));
  ASSIGN_OR_RETURN(const JobSpec spec, ValidateSpecFile(spec_file));
  BackendOptions backend;
  backend.threads = static_cast<int>(
      options.threads > 0 ? options.threads
                          : std::max<int64_t>(1, std::thread::hardware_concurrency()));
  return Sampler::Load(files.weights, spec, MakeCpuBackend(backend));
}

}  // namespace

int RunGenerate(const GenerateOptions& options, CommandContext& context) {
  const absl::StatusOr<std::unique_ptr<Sampler>> sampler = LoadSampler(options);
  if (!sampler.ok()) return context.console->Fail(sampler.status());
  context.console->Print(options.prompt);
  const SamplingOptions sampling{
      .tokens = options.tokens, .temperature = options.temperature, .seed = options.seed};
  const absl::Status status = (*sampler)->Generate(options.prompt, sampling, [&context](char byte) {
    context.console->Print(std::string(1, byte));
    return !context.stop->requested();
  });
  context.console->Print("\n");
  if (!status.ok()) return context.console->Fail(status);
  return context.stop->requested() ? kExitInterrupted : kExitSuccess;
}

}  // namespace stagecoach
