#include "services/cli/trained/job_inputs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "checkpoint/names.h"
#include "plan/data/data_set_path.h"
#include "plan/job/data_kinds.h"
#include "services/cli/client/fetch_data.h"
#include "services/cli/trained/decoding_network.h"
#include "services/common/convert/spec/convert_kind.h"
#include "services/common/convert/spec/convert_spec.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {
namespace {

constexpr char kWeightsFolder[] = "initialize";

// Empty: none, or the job's data is of a kind that this version does not know.
std::string TokenizerIn(const v1::JobSpec& spec) {
  const absl::StatusOr<DataSpec> data = DataFromProto(spec.data());
  return data.ok() ? TokenizerPathOf(*data) : "";
}

// "store:/data/NAME/a" of a job that gives the set beside the path.
std::string WeightsIn(const v1::JobSpec& spec) {
  const v1::Initialize& initialize = spec.initialize();
  if (initialize.dataset().empty()) return initialize.from();
  return DataSetPath{initialize.dataset(), initialize.from()}.Text();
}

absl::Status SetTokenizer(const std::string& from, const std::string& to, v1::JobSpec* spec) {
  ASSIGN_OR_RETURN(DataSpec data, DataFromProto(spec->data()));
  ChangeDataPaths([&](const std::string& path) { return path == from ? to : path; }, &data);
  KindToProto(data, spec->mutable_data());
  spec->mutable_data()->clear_dataset();  // its paths name it now
  return absl::OkStatus();
}

absl::Status FetchTokenizer(DataClient& client, const std::string& text, const std::string& folder,
                            v1::JobSpec* spec) {
  ASSIGN_OR_RETURN(const DataSetPath path, ParseDataSetPath(text));
  ASSIGN_OR_RETURN(FetchedSet set, FetchedSet::Open(client, path.set));
  RETURN_IF_ERROR(set.Fetch(path.path, folder).status());
  const std::string config = TokenizerConfigPath(path.path);
  if (set.manifest().Find(config) != nullptr) RETURN_IF_ERROR(set.Fetch(config, folder).status());
  return SetTokenizer(text, NameOf(path.path), spec);
}

absl::Status FetchWeights(DataClient& client, bool config_alone, const std::string& text,
                          const std::string& folder, v1::JobSpec* spec) {
  ASSIGN_OR_RETURN(const DataSetPath path, ParseDataSetPath(text));
  ASSIGN_OR_RETURN(FetchedSet set, FetchedSet::Open(client, path.set));
  // An index has its shards beside it.
  const bool index = path.path.ends_with(".json");
  std::string fetched = path.path;
  if (index) fetched = path.path.find('/') == std::string::npos ? "" : FolderOf(path.path);
  const std::string to = JoinPath(folder, kWeightsFolder);
  const bool file = set.manifest().Find(path.path) != nullptr;
  if (!config_alone || !file) {
    const auto takes = [&](const std::string& name) {
      return name.ends_with(".json") || (!config_alone && name.ends_with(".safetensors"));
    };
    RETURN_IF_ERROR(set.Fetch(fetched, to, takes).status());
  }
  std::string in_folder = fetched.empty() ? "" : NameOf(fetched);
  if (index) in_folder = JoinPath(in_folder.empty() ? "." : in_folder, NameOf(path.path));
  spec->mutable_initialize()->set_from(JoinPath(kWeightsFolder, in_folder));
  spec->mutable_initialize()->clear_dataset();
  return absl::OkStatus();
}

// "data.text.tokenizer: store:/data/1f2e/pieces.model".
absl::Status Located(const absl::Status& status, const char* field, const std::string& text,
                     const char* remedy) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(field, ": ", ShownName(text), ": ", status.message(), remedy));
}

}  // namespace

bool InputsAreInCluster(const v1::JobSpec& spec, const InputChoice& choice) {
  return (choice.tokenizer && IsDataSetPath(TokenizerIn(spec))) ||
         ((choice.weights || choice.config) && IsDataSetPath(WeightsIn(spec)));
}

absl::Status FetchInputs(DataClient& client, const InputChoice& choice, const std::string& folder,
                         v1::JobSpec* spec) {
  const std::string tokenizer = TokenizerIn(*spec), weights = WeightsIn(*spec);
  bool in_weights = false;  // a folder of another program has both
  if ((choice.weights || choice.config) && IsDataSetPath(weights)) {
    RETURN_IF_ERROR(Located(FetchWeights(client, !choice.weights, weights, folder, spec),
                            "initialize.from", weights, ""));
    in_weights = FolderOf(tokenizer) == weights && tokenizer.ends_with(".json");
  }
  if (!choice.tokenizer || !IsDataSetPath(tokenizer)) return absl::OkStatus();
  if (in_weights) {
    return SetTokenizer(tokenizer, JoinPath(spec->initialize().from(), NameOf(tokenizer)), spec);
  }
  return Located(FetchTokenizer(client, tokenizer, folder, spec), "tokenizer", tokenizer,
                 "; --tokenizer names it on this machine");
}

}  // namespace stagecoach
