#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"
#include "services/cli/output/new_file.h"
#include "services/cli/output/progress.h"
#include "services/cli/output/text.h"

namespace stagecoach {
namespace {

absl::StatusOr<v1::GetRecordFilesResponse> FetchRecords(const RecordsOptions& options,
                                                        CommandContext& context) {
  ASSIGN_OR_RETURN(const std::unique_ptr<JobClient> client, context.connect(context.client));
  ASSIGN_OR_RETURN(v1::GetRecordFilesResponse records, client->RecordFiles(options.job));
  if (records.files().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", options.job, ": has no records yet; try again once it has run"));
  }
  Console& console = *context.console;
  const OnFetched draw = [&console](int64_t done, int64_t total) {
    if (!console.has_bar() || total == 0) return;
    console.DrawBar(LoadingBar(absl::StrCat("fetches the records: ", 100 * done / total, " %"),
                               console.columns()));
  };
  const absl::Status fetched =
      WriteNewFolder(*PosixFileSystem(), options.to, [&](const std::string& folder) {
        return client->FetchRecords(records, folder, draw, context.stop);
      });
  console.ClearBar();
  RETURN_IF_ERROR(fetched);
  records.clear_grant();  // of no use to people, and a secret
  return records;
}

}  // namespace

int RunRecords(const RecordsOptions& options, CommandContext& context) {
  const auto records = FetchRecords(options, context);
  if (!records.ok()) return context.console->Fail(records.status());
  if (context.output != OutputFormat::kTable) {
    context.console->Print(ToJson(*records, context.output));
    return kExitSuccess;
  }
  int64_t bytes = 0;
  for (const v1::ExportedFile& file : records->files()) bytes += file.bytes();
  context.console->PrintLine(options.to);
  context.console->Note(absl::StrCat("metrics.jsonl and TensorBoard's files, ", FormatBytes(bytes),
                                     "; to see them:  tensorboard --logdir ", options.to));
  return kExitSuccess;
}

}  // namespace stagecoach
