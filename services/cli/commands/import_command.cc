#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "plan/job/job_spec.h"
#include "services/cli/commands/commands.h"
#include "services/cli/hugging_face/imported_job.h"
#include "services/cli/hugging_face/model_folder.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"
#include "services/cli/output/new_file.h"
#include "services/cli/spec/spec_reader.h"
#include "services/cli/spec/weights_here.h"
#include "stage/files/data_roots.h"

namespace stagecoach {
namespace {

struct ImportedJob {
  std::string text;
  v1::JobSpec spec;
  std::string note;  // empty: none
};

// A file of the current folder is meant even if the job file goes elsewhere.
std::string TextOfJob(const std::string& text) {
  std::error_code error;
  if (!std::filesystem::exists(text, error)) return text;
  return std::filesystem::absolute(text).lexically_normal().string();
}

absl::StatusOr<ImportedJob> Import(const ImportOptions& options) {
  ASSIGN_OR_RETURN(const ModelFolder folder,
                   OpenModelFolder(*DataRoots::Everything(), options.folder, options.tokenizer));
  ASSIGN_OR_RETURN(std::string text, ImportedJobText(folder, {.text = TextOfJob(options.text),
                                                              .context = options.context}));
  ASSIGN_OR_RETURN(ValidSpecFile valid,
                   CheckImportedJob(folder, text, options.to.empty() ? "job.yaml" : options.to));
  // Weights that do not fit are told now, and not when the job begins.
  ASSIGN_OR_RETURN(const Network network, ExpandJob(valid.job));
  RETURN_IF_ERROR(CheckWeightsHere(valid.job, network));
  return ImportedJob{std::move(text), std::move(valid.spec), folder.note};
}

}  // namespace

int RunImport(const ImportOptions& options, CommandContext& context) {
  const absl::StatusOr<ImportedJob> job = Import(options);
  if (!job.ok()) return context.console->Fail(job.status());
  if (!job->note.empty()) context.console->Note("note: " + job->note);
  if (options.to.empty()) {
    const bool table = context.output == OutputFormat::kTable;
    context.console->Print(table ? job->text : ToJson(job->spec, context.output));
    return kExitSuccess;
  }
  const absl::Status written =
      WriteNewTextFile(*PosixFileSystem(), options.to, job->text, "name another file with --to");
  if (!written.ok()) return context.console->Fail(written);
  context.console->PrintLine(options.to);
  return kExitSuccess;
}

}  // namespace stagecoach
