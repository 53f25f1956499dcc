#include "services/cli/commands/weight_options.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "checkpoint/facts_file.h"
#include "checkpoint/names.h"
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

}  // namespace

void NoteBase(const WeightSource& source, Console& console) {
  if (source.base().empty()) return;
  console.Note(absl::StrCat("weights  adapters of ", ShownName(source.name()), ", merged with ",
                            ShownName(source.base())));
}

absl::StatusOr<FoundWeights> FindWeights(const WeightOptions& options,
                                         const CommandContext& context,
                                         const std::string& tokenizer) {
  ASSIGN_OR_RETURN(
      WeightSource source,
      WeightSource::Find({.source = options.source,
                          .job_file = options.job_file,
                          .tokenizer = tokenizer,
                          .step = options.step,
                          .connect = [&context] { return context.connect(context.client); },
                          .stop = context.stop}));
  NoteChoice(source, *context.console);
  NoteBase(source, *context.console);
  // The configuration beside the weights is the job spec that they were trained by.
  ASSIGN_OR_RETURN(SpecFile spec_file, ReadSpecFile(source.config_file()));
  ASSIGN_OR_RETURN(ValidSpecFile valid, ValidateSpecFile(std::move(spec_file)));
  ASSIGN_OR_RETURN(DataFacts facts, ReadFacts(*PosixFileSystem(), FolderOf(source.config_file())));
  return FoundWeights{std::move(source), std::move(valid.job), std::move(facts)};
}

absl::StatusOr<FoundWriter> FindWriter(Writes writes, const WeightOptions& options,
                                       const std::string& tokenizer, const CommandContext& context,
                                       const std::function<absl::Status(const JobSpec&)>& check) {
  ASSIGN_OR_RETURN(FoundWeights found, FindWeights(options, context, tokenizer));
  ASSIGN_OR_RETURN(
      Network expanded,
      NetworkThatWrites(writes, found.spec, options.precision.value_or(Precision::kFloat32)));
  if (check) RETURN_IF_ERROR(check(found.spec));
  ASSIGN_OR_RETURN(std::unique_ptr<const Tokenizer> loaded, TokenizerOfJob(found.spec, tokenizer));
  ASSIGN_OR_RETURN(DecodingNetwork network,
                   LoadDecodingNetwork(
                       writes, {.from = found.source.weights_file(), .names = found.source.names()},
                       std::move(expanded), MakeBackendHere(options), std::move(loaded)));
  return FoundWriter{found.source.name(), std::move(found.spec), std::move(network)};
}

int64_t ThreadsHere(const WeightOptions& options) {
  return options.threads > 0 ? options.threads
                             : std::max<int64_t>(1, std::thread::hardware_concurrency());
}

std::unique_ptr<Backend> MakeBackendHere(const WeightOptions& options) {
  BackendOptions backend;
  backend.threads = static_cast<int>(ThreadsHere(options));
  return MakeCpuBackend(backend);
}

}  // namespace stagecoach
