// The data sets that the cluster keeps.
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/job_name.h"
#include "base/utf8.h"
#include "plan/data/bucket_path.h"
#include "plan/data/data_set_path.h"
#include "services/cli/client/fetch_data.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/confirm.h"
#include "services/cli/commands/data_upload.h"
#include "services/cli/output/data_output.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"
#include "services/cli/output/text.h"

namespace stagecoach {
namespace {

namespace fs = std::filesystem;

// A folder alone is the set's root. Otherwise each path has its last name in the set.
absl::StatusOr<FileSet> FilesToPut(const std::vector<std::string>& paths) {
  FileSet files;
  for (const std::string& given : paths) {
    if (IsBucketPath(given) || IsMisspeltBucketPath(given)) {
      return absl::InvalidArgumentError(absl::StrCat(
          ShownName(given),
          ": is in a bucket, and `data put` takes files of this machine; a job file may name it "
          "itself, as data.text.path: s3://BUCKET/KEY, or download it and put the files"));
    }
    std::error_code error;
    const fs::path path = fs::absolute(given).lexically_normal();
    const bool alone = paths.size() == 1 && fs::is_directory(path, error);
    const std::string name =
        path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
    if (!alone && name.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(ShownName(given), ": is all of this machine; name a folder in it"));
    }
    RETURN_IF_ERROR(files.Add(path.string(), alone ? "" : name));
  }
  RETURN_IF_ERROR(files.Sort());
  if (files.files().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(ShownName(paths.front()), ": has no files"));
  }
  return files;
}

absl::Status CheckSetName(const std::string& name) {
  if (name.empty() || (IsJobName(name) && !IsDigest(name))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--name = ", ShownName(name), ": want ", kJobNameRule));
}

// People give the first digits of an id, as `data list` shows them.
absl::StatusOr<std::string> WholeId(DataClient& client, const std::string& given) {
  constexpr size_t kFewestDigits = 6;
  const bool digits = given.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (IsDigest(given) || !digits || given.size() < kFewestDigits) return given;
  ASSIGN_OR_RETURN(const v1::ListDataSetsResponse sets, client.List());
  std::vector<std::string> found;
  for (const v1::DataSet& set : sets.data_sets()) {
    if (set.name() == given) return given;
    if (set.id().starts_with(given)) found.push_back(set.id());
  }
  if (found.size() <= 1) return found.empty() ? given : found.front();
  return absl::InvalidArgumentError(
      absl::StrCat(given, ": begins the ids of several data sets; give more digits"));
}

void PrintSet(const v1::DataSet& set, const std::string& line, CommandContext& context) {
  if (context.output == OutputFormat::kTable) {
    context.console->PrintLine(line);
  } else {
    context.console->Print(ToJson(set, context.output));
  }
}

absl::Status PutSet(const PutDataOptions& options, CommandContext& context) {
  RETURN_IF_ERROR(CheckSetName(options.name));
  ASSIGN_OR_RETURN(const FileSet files, FilesToPut(options.paths));
  ASSIGN_OR_RETURN(const std::unique_ptr<JobClient> client, context.connect(context.client));
  absl::StatusOr<v1::DataSet> set =
      UploadFiles(client->data(), files, {options.name, options.replace, options.again}, context);
  if (absl::IsAlreadyExists(set.status())) {
    return absl::AlreadyExistsError(absl::StrCat(
        set.status().message(), "; choose another --name, or give it to these files: --replace"));
  }
  RETURN_IF_ERROR(set.status());
  PrintSet(*set, set->name().empty() ? set->id() : set->name(), context);
  return absl::OkStatus();
}

absl::Status ShowSet(const std::string& data_set, CommandContext& context) {
  ASSIGN_OR_RETURN(const std::unique_ptr<JobClient> client, context.connect(context.client));
  const StopSignal::Registration on_stop(context.stop, client->data().Stopper());
  ASSIGN_OR_RETURN(const std::string id, WholeId(client->data(), data_set));
  ASSIGN_OR_RETURN(const FetchedSet set, FetchedSet::Open(client->data(), id));
  context.console->Print(context.output == OutputFormat::kTable
                             ? DataSetText(set.info(), set.manifest().manifest())
                             : DataSetJson(set.info(), set.manifest().manifest(), context.output));
  return absl::OkStatus();
}

absl::StatusOr<int> RemoveSet(const RemoveDataOptions& options, CommandContext& context) {
  if (!options.yes) {
    RETURN_IF_ERROR(CheckCanAsk("data remove removes a data set for good", "add --yes", context));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<JobClient> client, context.connect(context.client));
  ASSIGN_OR_RETURN(const std::string id, WholeId(client->data(), options.data_set));
  if (!options.yes) {
    ASSIGN_OR_RETURN(const v1::OpenDataSetResponse opened, client->data().Open(id));
    const v1::DataSet& set = opened.data_set();
    ASSIGN_OR_RETURN(const bool sure, Confirmed(absl::StrCat("remove ", DataSetLabel(set), ", ",
                                                             FormatBytes(set.bytes()), "?"),
                                                context));
    if (!sure) {
      context.console->Note("nothing was removed");
      return kExitFailed;
    }
  }
  ASSIGN_OR_RETURN(const v1::RemoveDataSetResponse removed, client->data().Remove(id));
  const v1::DataSet& set = removed.data_set();
  if (context.output == OutputFormat::kTable) {
    context.console->Note(
        absl::StrCat("removed ", DataSetLabel(set), ", ", FormatBytes(set.bytes())));
  } else {
    context.console->Print(ToJson(set, context.output));
  }
  return kExitSuccess;
}

}  // namespace

int RunPutData(const PutDataOptions& options, CommandContext& context) {
  const absl::Status status = PutSet(options, context);
  return status.ok() ? kExitSuccess : context.console->Fail(status);
}

int RunListData(CommandContext& context) {
  const absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(context.client);
  if (!client.ok()) return context.console->Fail(client.status());
  const absl::StatusOr<v1::ListDataSetsResponse> sets = (*client)->data().List();
  if (!sets.ok()) return context.console->Fail(sets.status());
  if (context.output == OutputFormat::kTable) {
    context.console->Print(DataSetTable(*sets));
  } else if (context.output == OutputFormat::kJson) {
    context.console->Print(ToJson(*sets, context.output));
  } else {
    for (const v1::DataSet& set : sets->data_sets()) {
      context.console->Print(ToJson(set, context.output));
    }
  }
  return kExitSuccess;
}

int RunShowData(const std::string& data_set, CommandContext& context) {
  const absl::Status status = ShowSet(data_set, context);
  return status.ok() ? kExitSuccess : context.console->Fail(status);
}

int RunRemoveData(const RemoveDataOptions& options, CommandContext& context) {
  const absl::StatusOr<int> code = RemoveSet(options, context);
  return code.ok() ? *code : context.console->Fail(code.status());
}

}  // namespace stagecoach
