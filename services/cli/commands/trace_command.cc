#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/status.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/save_trace.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/text.h"
#include "services/common/observe/chrome_trace.h"

namespace stagecoach {
namespace {

// Through a temporary name: what has the name is whole.
absl::Status WriteWhole(const std::string& file, const std::string& text) {
  const std::string temporary = file + ".tmp";
  const auto failed = [&temporary, &file](const char* what) {
    const absl::Status why = absl::ErrnoToStatus(errno, "");
    std::remove(temporary.c_str());
    return absl::FailedPreconditionError(
        absl::StrCat("--file ", file, ": cannot ", what, ": ", why.message()));
  };
  errno = 0;
  std::ofstream stream(temporary, std::ios::binary | std::ios::trunc);
  if (!stream) return failed("open it");
  stream << text;
  stream.close();
  if (!stream) return failed("write it");
  if (std::rename(temporary.c_str(), file.c_str()) != 0) return failed("rename it");
  return absl::OkStatus();
}

// What the trace holds: an error if that is nothing.
absl::Status CheckTrace(const std::string& job, const v1::GetTraceResponse& trace,
                        Console* console) {
  int spans = 0, missing = 0;
  std::string reasons;
  for (const v1::StageTrace& stage : trace.stages()) {
    spans += stage.spans_size();
    if (stage.error().empty()) continue;
    ++missing;
    absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", "stage ", stage.stage(), " (",
                    stage.name(), "): ", stage.error());
  }
  if (missing > 0 && missing == trace.stages_size()) {
    return absl::UnavailableError(absl::StrCat("job ", job, ": no stage answered: ", reasons));
  }
  if (missing > 0) console->Note(absl::StrCat("stagecoach: missing in the trace: ", reasons));
  if (spans > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("job ", job,
                   ": no stage holds anything of it; it has run no step since they "
                   "were started, or others have run too many since"));
}

size_t CountSteps(const v1::GetTraceResponse& trace) {
  std::set<uint64_t> steps;
  for (const v1::StageTrace& stage : trace.stages()) {
    for (const v1::TraceSpan& span : stage.spans()) steps.insert(span.step());
  }
  return steps.size();
}

std::string SavedJson(const std::string& job, const SavedTrace& saved) {
  std::vector<std::string> missing;
  for (const std::string& stage : saved.missing) missing.push_back(JsonText(stage));
  return absl::StrCat("{\"job\":", JsonText(job), ",\"file\":", JsonText(saved.file),
                      ",\"steps\":", saved.steps, ",\"stages\":", saved.stages, ",\"missing\":[",
                      absl::StrJoin(missing, ","), "]}");
}

}  // namespace

absl::StatusOr<SavedTrace> SaveTrace(JobClient& client, const std::string& job, uint32_t steps,
                                     const std::string& file, Console* console) {
  ASSIGN_OR_RETURN(v1::GetTraceResponse trace, client.GetTrace(job, steps));
  RETURN_IF_ERROR(CheckTrace(job, trace, console));
  SavedTrace saved{file, CountSteps(trace), static_cast<size_t>(trace.stages_size()), {}};
  for (const v1::StageTrace& stage : trace.stages()) {
    if (!stage.error().empty()) saved.missing.push_back(stage.name());
  }
  const std::string text = ToChromeTrace(job, trace);
  if (file == "-") {
    console->Print(text);
    return saved;
  }
  RETURN_IF_ERROR(WriteWhole(file, text));
  console->Note(absl::StrCat("trace    ", file, "  (", saved.steps, " steps of ", saved.stages,
                             " stages; open it in https://ui.perfetto.dev)"));
  return saved;
}

int RunTrace(const TraceOptions& options, CommandContext& context) {
  const absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(context.client);
  if (!client.ok()) return context.console->Fail(client.status());
  const absl::StatusOr<SavedTrace> saved =
      SaveTrace(**client, options.job, options.steps, options.file, context.console);
  if (!saved.ok()) return context.console->Fail(saved.status());
  // With "-" standard output is the trace, which is JSON already.
  if (context.output != OutputFormat::kTable && options.file != "-") {
    context.console->PrintLine(SavedJson(options.job, *saved));
  }
  return kExitSuccess;
}

}  // namespace stagecoach
