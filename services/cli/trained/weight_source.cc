#include "services/cli/trained/weight_source.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "checkpoint/names.h"
#include "checkpoint/other_weights.h"
#include "checkpoint/store/store.h"
#include "network/names/network_text.h"
#include "services/cli/hugging_face/imported_job.h"
#include "services/cli/hugging_face/model_folder.h"
#include "services/cli/output/job_output.h"
#include "services/cli/output/new_file.h"
#include "services/cli/spec/file_head.h"
#include "services/cli/spec/spec_reader.h"
#include "services/cli/trained/job_inputs.h"
#include "services/cli/trained/merged_weights.h"
#include "stage/files/data_roots.h"

namespace stagecoach {
namespace {

namespace fs = std::filesystem;

constexpr char kWeightsFile[] = "model.safetensors";
constexpr char kExports[] = "exports";
constexpr char kConfigFile[] = "stagecoach.json";  // the job beside exported weights
// Positions of a text of an imported model: they take memory, and models take up to a million.
constexpr int64_t kMostWritten = 8192;

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool IsFolder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// The exports of a `local` run, the one whose weights were written last first.
std::vector<std::string> ExportsByAge(const fs::path& exports) {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(exports, error)) {
    std::error_code no_weights;
    const fs::file_time_type time = fs::last_write_time(entry.path() / kWeightsFile, no_weights);
    if (!no_weights) found.emplace_back(time, entry.path().string());
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> folders;
  for (auto& [time, folder] : found) folders.push_back(std::move(folder));
  return folders;
}

// Before its job is looked for, which another file does not have beside it.
absl::Status CheckKind(const std::string& file) {
  const std::string head = FileHead(file).value_or("");
  const std::optional<FileKind> kind = FileKindOf(head);
  if (!kind.has_value() || kind->name == kSafetensorsKind) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": ", OtherKindText(head, kSafetensorsKind)));
}

// Names and shapes do not tell the scale of adapters.
absl::Status CheckIsOf(const ValidSpecFile& job, const Manifest& manifest) {
  if (Sha256Hex(CanonicalNetworkText(job.network)) == manifest.model_sha256)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(job.file,
                                                 ": its network is not the one of checkpoint ",
                                                 manifest.job, " at step ", manifest.state.step,
                                                 "; give the job that wrote it, with its rank, "
                                                 "alpha and targets"));
}

absl::Status NoWeightsIn(const std::string& folder) {
  const std::string other = OtherWeightsIn(*PosixFileSystem(), folder);
  if (!other.empty()) return absl::NotFoundError(absl::StrCat(folder, ": ", other));
  return absl::NotFoundError(absl::StrCat(
      folder, ": holds neither ", kWeightsFile, " nor a checkpoint's ", kManifestFile,
      " nor weights that a `stagecoach local` run exported (", kExports, "/*/", kWeightsFile, ")",
      IsFolder(fs::path(folder) / "checkpoints")
          ? "; of a run that did not end name a folder below its checkpoints/, with --job-file"
          : ""));
}

// Where a user finds what to change.
struct AdapterPlace {
  const std::string& adapters;
  const std::string& job_file;
};

// If the base is not on this machine, says that the adapters need it, and where its path is set.
absl::Status NamingTheBase(const absl::Status& status, const AdapterPlace& place) {
  if (!absl::IsNotFound(status) && !absl::IsPermissionDenied(status)) return status;
  return Annotate(status, absl::StrCat(place.adapters,
                                       ": has adapters alone; copy their base to this machine, and "
                                       "name it in ",
                                       place.job_file));
}

}  // namespace

absl::StatusOr<WeightSource> WeightSource::InFolder(const std::string& folder) {
  WeightSource found;
  found.weights_file_ = (fs::path(folder) / kWeightsFile).string();
  found.config_file_ = (fs::path(folder) / kConfigFile).string();
  if (Exists(found.config_file_)) return found;
  return absl::NotFoundError(absl::StrCat(folder, ": no ", kConfigFile,
                                          " beside the weights, which says what they are of"));
}

absl::StatusOr<WeightSource> WeightSource::OfModelFolder(const WeightRequest& request) {
  FileSystem& files = *PosixFileSystem();
  ASSIGN_OR_RETURN(const ModelFolder folder,
                   OpenModelFolder(*DataRoots::Everything(), request.source, request.tokenizer));
  ASSIGN_OR_RETURN(
      const std::string job,
      ImportedJobText(
          folder,
          {.text = "none",
           .context = folder.config.any_context ? std::min(folder.context(), kMostWritten) : 0}));
  RETURN_IF_ERROR(CheckImportedJob(folder, job, "job.yaml").status());
  ASSIGN_OR_RETURN(std::shared_ptr<ScratchFolder> temporary, ScratchFolder::Make("imported"));
  WeightSource found;
  found.weights_file_ = folder.path;
  found.names_ = std::string(kHuggingFaceNames);
  found.config_file_ = (fs::path(temporary->path()) / "job.yaml").string();
  RETURN_IF_ERROR(WriteNewTextFile(files, found.config_file_, job, ""));
  found.temporary_.push_back(std::move(temporary));
  return found;
}

absl::StatusOr<WeightSource> WeightSource::OfCheckpoint(const WeightRequest& request) {
  if (request.job_file.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.source,
                     ": a checkpoint has numbers only; name the job that they were "
                     "trained by with --job-file"));
  }
  ASSIGN_OR_RETURN(const SpecFile spec_file, ReadSpecFile(request.job_file));
  ASSIGN_OR_RETURN(const ValidSpecFile valid, ValidateSpecFile(spec_file));
  FileSystem& files = *PosixFileSystem();
  ASSIGN_OR_RETURN(const Manifest manifest, ReadManifestFile(files, request.source));
  if (valid.job.training.lora.given()) RETURN_IF_ERROR(CheckIsOf(valid, manifest));
  ASSIGN_OR_RETURN(std::shared_ptr<ScratchFolder> temporary, ScratchFolder::Make("weights"));
  const CheckpointRef ref{manifest.job, manifest.state.step, request.source};
  RETURN_IF_ERROR(ExportWeights(files, ref, manifest, temporary->path(),
                                ToJson(spec_file.spec, OutputFormat::kJson))
                      .status());
  ASSIGN_OR_RETURN(WeightSource found, InFolder(temporary->path()));
  found.temporary_.push_back(std::move(temporary));
  found.origin_ = request.source;
  return found;
}

absl::StatusOr<WeightSource> WeightSource::OfJob(const WeightRequest& request) {
  const std::string& id = request.source;
  if (!CheckJobName(id).ok()) {
    return absl::NotFoundError(
        absl::StrCat(id, ": no such file or folder, and no job's id either"));
  }
  const auto in_context = [&id](const absl::Status& error) {
    return Annotate(error, absl::StrCat(id, " is no file or folder; as a job's id"));
  };
  absl::StatusOr<std::unique_ptr<JobClient>> client = request.connect();
  if (!client.ok()) return in_context(client.status());
  const absl::StatusOr<v1::Job> job = (*client)->Get(id);
  if (!job.ok()) return in_context(job.status());
  if (request.step < 0 && IsFolder(job->weights_folder())) return InFolder(job->weights_folder());
  // Of a job that is still at work, of an earlier step, or of another machine.
  const absl::StatusOr<v1::ExportWeightsResponse> exported =
      (*client)->Export(id, request.step, /*average=*/false);
  if (!exported.ok()) return in_context(exported.status());
  if (IsFolder(exported->folder())) return InFolder(exported->folder());
  ASSIGN_OR_RETURN(std::shared_ptr<ScratchFolder> temporary, ScratchFolder::Make("weights"));
  StopSignal never;
  RETURN_IF_ERROR(Annotate((*client)->Fetch(
                               *exported, temporary->path(), [](int64_t, int64_t) {},
                               request.stop != nullptr ? request.stop : &never),
                           absl::StrCat("weights of job ", id)));
  ASSIGN_OR_RETURN(WeightSource found, InFolder(temporary->path()));
  found.temporary_.push_back(std::move(temporary));
  return found;
}

bool NamesAPath(const std::string& source) { return Exists(source); }

bool NamesACheckpoint(const std::string& source) {
  const fs::path path(source);
  return IsFolder(path) && !Exists(path / kWeightsFile) && Exists(path / kManifestFile);
}

// Puts the job's adapters, if it has some, and their base together.
absl::Status WeightSource::Merge(const WeightRequest& request) {
  if (names_ != kOwnNames) return absl::OkStatus();
  ASSIGN_OR_RETURN(SpecFile spec_file, ReadSpecFile(config_file_));
  if (spec_file.spec.training().lora().rank() == 0) return absl::OkStatus();
  const std::string job_file = origin_.empty() ? config_file_ : request.job_file;
  ASSIGN_OR_RETURN(ValidSpecFile valid, ValidateSpecFile(std::move(spec_file)));
  FileSystem& files = *PosixFileSystem();
  ASSIGN_OR_RETURN(std::shared_ptr<ScratchFolder> temporary, ScratchFolder::Make("merged"));
  const fs::path folder(temporary->path());
  const std::string merged = (folder / kWeightsFile).string();
  RETURN_IF_ERROR(NamingTheBase(WriteMergedWeights(files, valid.job, weights_file_, merged),
                                {.adapters = name(), .job_file = job_file}));
  // Of a job without adapters. One that went on from another needs its weights no more.
  valid.spec.mutable_training()->clear_lora();
  valid.spec.clear_resume();
  RETURN_IF_ERROR(TakeJob(valid.spec, std::move(temporary)));
  if (origin_.empty()) origin_ = weights_file_;
  weights_file_ = merged;
  base_ = valid.job.initialize.from;
  return absl::OkStatus();
}

absl::Status WeightSource::TakeJob(const v1::JobSpec& job, std::shared_ptr<ScratchFolder> folder) {
  const fs::path to(folder->path());
  if (const fs::path facts = fs::path(config_file_).parent_path() / kExportFactsFile;
      Exists(facts)) {
    std::error_code error;
    fs::copy_file(facts, to / kExportFactsFile, error);
    if (error) {
      return absl::UnavailableError(absl::StrCat("copy ", facts.string(), ": ", error.message()));
    }
  }
  config_file_ = (to / kConfigFile).string();
  temporary_.push_back(std::move(folder));
  return WriteNewTextFile(*PosixFileSystem(), config_file_, ToJson(job, OutputFormat::kJson), "");
}

absl::Status WeightSource::FetchOthers(const WeightRequest& request) {
  if (names_ != kOwnNames) return absl::OkStatus();
  ASSIGN_OR_RETURN(SpecFile spec_file, ReadSpecFile(config_file_));
  v1::JobSpec& spec = spec_file.spec;
  const bool adapts = spec.training().lora().rank() > 0;
  const InputChoice choice{.tokenizer = request.reads_tokenizer && request.tokenizer.empty(),
                           .weights = request.merged && adapts,
                           .config = request.reads_config};
  if (!InputsAreInCluster(spec, choice)) return absl::OkStatus();
  const std::string place =
      absl::StrCat(name(), ": a cluster's data set has what its job read beside the weights");
  ASSIGN_OR_RETURN(const std::unique_ptr<JobClient> client, Annotate(request.connect(), place));
  StopSignal never;
  const StopSignal::Registration on_stop(request.stop != nullptr ? request.stop : &never,
                                         client->data().Stopper());
  ASSIGN_OR_RETURN(std::shared_ptr<ScratchFolder> temporary, ScratchFolder::Make("inputs"));
  RETURN_IF_ERROR(Annotate(FetchInputs(client->data(), choice, temporary->path(), &spec), place));
  return TakeJob(spec, std::move(temporary));
}

absl::StatusOr<WeightSource> WeightSource::Find(const WeightRequest& request) {
  ASSIGN_OR_RETURN(WeightSource found, Locate(request));
  RETURN_IF_ERROR(found.FetchOthers(request));
  if (request.merged) RETURN_IF_ERROR(found.Merge(request));
  return found;
}

absl::StatusOr<WeightSource> WeightSource::Locate(const WeightRequest& request) {
  const fs::path path(request.source);
  if (!Exists(path)) return OfJob(request);
  if (!IsFolder(path)) {
    RETURN_IF_ERROR(CheckKind(request.source));
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (!Exists(folder / kConfigFile) && IsModelFolder(*DataRoots::Everything(), folder.string())) {
      return absl::InvalidArgumentError(absl::StrCat(
          request.source, ": a file of a Hugging Face folder; name the folder ", folder.string()));
    }
    ASSIGN_OR_RETURN(WeightSource found, InFolder(folder.string()));
    found.weights_file_ = request.source;
    return found;
  }
  // Its own error says what is wrong with a folder of Hugging Face.
  if (!Exists(path / kConfigFile) && IsModelFolder(*DataRoots::Everything(), request.source)) {
    return OfModelFolder(request);
  }
  if (Exists(path / kWeightsFile)) return InFolder(request.source);
  if (NamesACheckpoint(request.source)) return OfCheckpoint(request);
  std::vector<std::string> exported = ExportsByAge(path / kExports);
  if (exported.empty()) return NoWeightsIn(request.source);
  ASSIGN_OR_RETURN(WeightSource found, InFolder(exported.front()));
  found.passed_over_.assign(exported.begin() + 1, exported.end());
  return found;
}

}  // namespace stagecoach
