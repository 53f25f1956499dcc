#include "services/cli/trained/decoding_network.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "network/names/weight_names.h"
#include "network/network_kinds.h"
#include "network/passes/decoding.h"
#include "plan/data/bucket_path.h"
#include "plan/data/json_lines.h"
#include "plan/data/parallel_text.h"
#include "plan/data/text.h"
#include "plan/decoding_checks.h"
#include "stage/files/data_roots.h"

namespace stagecoach {

absl::StatusOr<Network> NetworkThatWrites(Writes writes, const JobSpec& spec, Precision precision) {
  ASSIGN_OR_RETURN(Network network, ExpandNetwork(spec.network, precision));
  RETURN_IF_ERROR(writes == Writes::kText ? CheckWritesText(spec, network)
                                          : CheckTranslates(spec, network));
  return network;
}

absl::StatusOr<DecodingNetwork> LoadDecodingNetwork(Writes writes, const InitializeSpec& weights,
                                                    Network network,
                                                    std::unique_ptr<Backend> backend,
                                                    std::unique_ptr<const Tokenizer> tokenizer) {
  if (tokenizer != nullptr && !tokenizer->Fits(network.classes())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tokenizer has ", tokenizer->ids(), " ids, and the network ",
                     network.classes(), "; give the tokenizer that the job was trained with"));
  }
  if (writes == Writes::kTranslations && tokenizer == nullptr) {
    return absl::InvalidArgumentError(
        "translations need the tokenizer that the job was trained with");
  }
  if (writes == Writes::kTranslations && tokenizer->begin() < 0) {
    return absl::InvalidArgumentError(
        "the tokenizer has no begin id (bos); give the one that the job was trained with");
  }
  DecodingNetwork loaded;
  loaded.context = network.wire(network.InputNamed("tokens")).type.shape[0];
  const bool ours = weights.names == kOwnNames;
  ASSIGN_OR_RETURN(loaded.trained,
                   ours ? LoadTrainedNetwork(weights.from, std::move(network), std::move(backend))
                        : LoadNamedNetwork(weights, std::move(network), std::move(backend)));
  loaded.tokenizer = std::move(tokenizer);
  return loaded;
}

absl::StatusOr<std::unique_ptr<TokenModel>> DecodingNetwork::Model(int64_t pool_rows,
                                                                   int64_t step_rows) const {
  const auto refusal = [pool_rows](absl::string_view why) {
    return absl::ResourceExhaustedError(
        absl::StrCat("keys and values of ", pool_rows, " rows: ", why,
                     "; give a smaller --batch, --beam or --tokens, or fewer --prompts"));
  };
  if (pool_rows > std::numeric_limits<int32_t>::max()) return refusal("these are too many");
  // Else every step of many rows packs the weights again, which stay as they are.
  trained.backend->UseSpareMemory({.packed_weights = true,
                                   .packed_products = step_rows >= kRowsToPack,
                                   .rooms = std::numeric_limits<int64_t>::max()});
  ASSIGN_OR_RETURN(DecodingForm form, DecodingOf(trained.network, pool_rows));
  auto model = LocalTokenModel::Create(std::move(form), *trained.cell, *trained.backend);
  if (absl::IsResourceExhausted(model.status())) return refusal(model.status().message());
  return model;
}

std::string TokenizerPathOf(const DataSpec& data) {
  if (data.kind == TextData::kKind) return data.As<TextData>().tokenizer;
  if (data.kind == JsonLinesData::kKind) return data.As<JsonLinesData>().tokenizer;
  if (data.kind == ParallelTextData::kKind) return data.As<ParallelTextData>().tokenizer;
  return "";
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> TokenizerOfJob(const JobSpec& spec,
                                                                const std::string& path) {
  const std::string of_job = TokenizerPathOf(spec.data);
  const std::string& used = path.empty() ? of_job : path;
  if (used.empty()) return nullptr;
  if (IsBucketPath(used)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path.empty() ? absl::StrCat("data.", spec.data.kind, ".tokenizer") : "--tokenizer", " = \"",
        ShownName(used),
        "\": is in a bucket, which this command does not read; download it, and --tokenizer names "
        "it on this machine"));
  }
  absl::StatusOr<std::unique_ptr<const Tokenizer>> tokenizer =
      Tokenizer::Load(*DataRoots::Everything(), used);
  if (tokenizer.ok() && (*tokenizer)->end() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(used,
                     ": has no end id (eos); give one that `stagecoach tokenizer train` wrote, or "
                     "name eos_token in tokenizer_config.json"));
  }
  if (tokenizer.ok() || !path.empty()) return tokenizer;
  return absl::Status(
      tokenizer.status().code(),
      absl::StrCat("data.", spec.data.kind, ".tokenizer: ", tokenizer.status().message(),
                   "; --tokenizer names it on this machine"));
}

}  // namespace stagecoach
