#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/status.h"
#include "checkpoint/names.h"
#include "network/network_kinds.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/weight_options.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"
#include "services/cli/output/new_file.h"
#include "services/cli/output/progress.h"
#include "services/cli/spec/spec_reader.h"
#include "services/cli/trained/job_inputs.h"
#include "services/cli/trained/model_files.h"
#include "services/cli/trained/peft_folder.h"
#include "services/cli/trained/renamed_weights.h"
#include "services/cli/trained/weight_source.h"
#include "stage/files/data_roots.h"

namespace stagecoach {
namespace {

// Of names that are a folder's.
absl::Status CheckTarget(const ExportOptions& options) {
  if (options.names != kHuggingFaceNames && options.names != kPeftNames) return absl::OkStatus();
  if (options.to.empty()) {
    return absl::InvalidArgumentError("--to: names no folder; name one that is not there yet");
  }
  if (!options.to.ends_with(".safetensors")) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--to = ", options.to, ": ", options.names,
                                                 " loads a folder: name one without .safetensors"));
}

absl::Status ExportRenamed(const ExportOptions& options, const CommandContext& context) {
  RETURN_IF_ERROR(CheckTarget(options));  // before weights are merged, which takes long
  ASSIGN_OR_RETURN(
      const WeightSource source,
      WeightSource::Find({.source = options.job,
                          .job_file = options.job_file,
                          .step = options.step,
                          .merged = options.names != kPeftNames,
                          .reads_tokenizer = options.names == kHuggingFaceNames,
                          .reads_config = options.names == kHuggingFaceNames,
                          .connect = [&context] { return context.connect(context.client); },
                          .stop = context.stop}));
  if (source.names() != kOwnNames) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.job,
                     ": is a folder of Hugging Face already; name a job that trained, "
                     "or its folder"));
  }
  ASSIGN_OR_RETURN(SpecFile spec_file, ReadSpecFile(source.config_file()));
  ASSIGN_OR_RETURN(const ValidSpecFile job, ValidateSpecFile(std::move(spec_file)));
  NoteBase(source, *context.console);
  if (options.names == kPeftNames) {
    if (!job.job.training.lora.given()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--names = ", kPeftNames, ": ", options.job,
                       " has no adapters (training.lora); for whole weights name ",
                       std::string(kHuggingFaceNames)));
    }
    return WritePeftFolder(*PosixFileSystem(), job.job, source.weights_file(), options.to);
  }
  ASSIGN_OR_RETURN(const WeightTable table,
                   Annotate(WeightNames(job.network, options.names), "--names"));
  FileSystem& files = *PosixFileSystem();
  if (options.names != kHuggingFaceNames) {
    return WriteRenamedWeights(files, source.weights_file(), table.names, options.to);
  }
  ASSIGN_OR_RETURN(ModelFiles model, ModelFilesOf(*DataRoots::Everything(), job.job));
  if (!model.note.empty()) context.console->Note("note: " + model.note);
  return WriteRenamedFolder(files, source.weights_file(), table.names,
                            {.target = options.to, .files = std::move(model.files)});
}

// What is to be done with a folder or a file in the place of a job's id, as a `local` run leaves
// it.
absl::Status ThereAlready(const ExportOptions& options, const CommandContext& context) {
  ASSIGN_OR_RETURN(
      const WeightSource source,
      WeightSource::Find({.source = options.job,
                          .job_file = options.job_file,
                          .step = options.step,
                          .merged = false,
                          .reads_tokenizer = false,
                          .connect = [&context] { return context.connect(context.client); },
                          .stop = context.stop}));
  return absl::InvalidArgumentError(absl::StrCat(
      options.job, ": is no id of a coordinator's job, and has its weights already, in ",
      source.weights_file(),
      "; to write them by the names of another program add --names and --to"));
}

// So that the folder stands alone: its tokenizer beside the weights, and in the job there.
absl::Status FetchTokenizerInto(const std::string& folder, JobClient& client, StopSignal* stop) {
  FileSystem& files = *PosixFileSystem();
  const std::string config = JoinPath(folder, kExportSpecFile);
  if (!files.Exists(config)) return absl::OkStatus();
  ASSIGN_OR_RETURN(SpecFile spec_file, ReadSpecFile(config));
  const InputChoice choice;
  if (!InputsAreInCluster(spec_file.spec, choice)) return absl::OkStatus();
  const StopSignal::Registration on_stop(stop, client.data().Stopper());
  RETURN_IF_ERROR(FetchInputs(client.data(), choice, folder, &spec_file.spec));
  RETURN_IF_ERROR(files.RemoveAll(config));
  return WriteText(files, config, ToJson(spec_file.spec, OutputFormat::kJson));
}

absl::Status FetchTo(const std::string& to, const v1::ExportWeightsResponse& exported,
                     JobClient& client, CommandContext& context) {
  Console& console = *context.console;
  const OnFetched draw = [&console](int64_t done, int64_t total) {
    if (!console.has_bar() || total == 0) return;
    console.DrawBar(LoadingBar(absl::StrCat("fetches the weights: ", 100 * done / total, " %"),
                               console.columns()));
  };
  const absl::Status fetched =
      WriteNewFolder(*PosixFileSystem(), to, [&](const std::string& folder) -> absl::Status {
        RETURN_IF_ERROR(client.Fetch(exported, folder, draw, context.stop));
        const absl::Status tokenizer = FetchTokenizerInto(folder, client, context.stop);
        if (!absl::IsNotFound(tokenizer)) return tokenizer;
        console.Note(absl::StrCat("note: without the tokenizer: ", tokenizer.message()));
        return absl::OkStatus();
      });
  console.ClearBar();
  return fetched;
}

}  // namespace

int RunExport(const ExportOptions& options, CommandContext& context) {
  if (!options.names.empty()) {
    const absl::Status status = ExportRenamed(options, context);
    if (!status.ok()) return context.console->Fail(status);
    context.console->PrintLine(options.to);
    return kExitSuccess;
  }
  if (std::error_code error; std::filesystem::exists(options.job, error)) {
    return context.console->Fail(ThereAlready(options, context));
  }
  const absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(context.client);
  if (!client.ok()) return context.console->Fail(client.status());
  absl::StatusOr<v1::ExportWeightsResponse> exported =
      (*client)->Export(options.job, options.step, options.average);
  if (!exported.ok()) return context.console->Fail(exported.status());
  if (!options.to.empty()) {
    const absl::Status fetched = FetchTo(options.to, *exported, **client, context);
    if (!fetched.ok()) return context.console->Fail(fetched);
    exported->set_folder(options.to);
  }
  if (context.output == OutputFormat::kTable) {
    if (exported->damaged_size() > 0) {
      context.console->Note(
          absl::StrCat("damaged and set aside: ", absl::StrJoin(exported->damaged(), ", "),
                       "; these are the weights of step ", exported->step()));
    }
    context.console->PrintLine(exported->folder());
    context.console->Note(absl::StrCat("digest ", exported->weights_digest()));
    if (options.to.empty()) {
      context.console->Note(
          "on the coordinator, until a day after somebody asked for it last; --to brings it here");
    }
  } else {
    context.console->Print(ToJson(*exported, context.output));
  }
  return kExitSuccess;
}

}  // namespace stagecoach
