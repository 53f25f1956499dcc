#include "services/cli/trained/merged_weights.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/numbers/low_rank.h"
#include "base/threads/progress.h"
#include "checkpoint/content_digest.h"
#include "network/names/weight_names.h"
#include "services/cli/trained/adapter_file.h"
#include "stage/cell/initial_value.h"
#include "stage/files/data_roots.h"
#include "stage/weights/weight_file.h"

namespace stagecoach {
namespace {

class Merger {
 public:
  Merger(const JobSpec& job, WeightFile* base, AdapterFile* adapters)
      : job_(job), base_(base), adapters_(adapters) {}

  // Of a parameter of the base, with what its adapters add.
  absl::StatusOr<std::span<const std::byte>> Bytes(const ParameterSpec& spec, int layer) {
    values_.resize(static_cast<size_t>(spec.shape.elements()));
    ASSIGN_OR_RETURN(const bool given, base_->Read(spec.name, values_));
    if (!given) SetInitialValues(spec, job_.seed, layer, 0, values_);
    for (const Adapter& adapter : adapters_->adapters()) {
      if (adapter.weight != spec.name) continue;
      ASSIGN_OR_RETURN(const std::vector<float> a, adapters_->Read(adapter.a));
      ASSIGN_OR_RETURN(const std::vector<float> b, adapters_->Read(adapter.b));
      const auto columns = static_cast<size_t>(spec.shape[1]);
      AddLowRank(a, b, adapters_->ShapeOf(adapter.a)[0], adapter.scale,
                 std::span(values_).subspan(static_cast<size_t>(adapter.first_row) * columns,
                                            static_cast<size_t>(adapter.rows) * columns));
    }
    TickProgress();
    return std::as_bytes(std::span<const float>(values_));
  }

 private:
  const JobSpec& job_;
  WeightFile* const base_;
  AdapterFile* const adapters_;
  std::vector<float> values_;
};

absl::Status CheckBase(const WeightFile& base, const JobSpec& job, const std::string& wanted) {
  ASSIGN_OR_RETURN(const WeightsRead read, base.Finish());
  std::vector<TensorDigest> content;
  for (const WeightsRead::Tensor& tensor : read.read) {
    content.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.sha256});
  }
  const std::string found = ContentDigest(std::move(content));
  if (wanted.empty() || wanted == found) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("initialize.from = \"", job.initialize.from, "\": sha256 ", found,
                   "; the adapters were trained with sha256 ", wanted, "; put those weights back"));
}

}  // namespace

absl::Status WriteMergedWeights(FileSystem& files, const JobSpec& job,
                                const std::string& adapters_file, const std::string& target) {
  ASSIGN_OR_RETURN(const Network network, ExpandJob(job));
  ASSIGN_OR_RETURN(AdapterFile adapters, AdapterFile::Open(files, adapters_file, network));
  const std::unique_ptr<DataRoots> readable = DataRoots::Everything();
  ASSIGN_OR_RETURN(const std::unique_ptr<WeightFile> base,
                   WeightFile::Open(*readable, job.initialize, network));
  Merger merger(job, base.get(), &adapters);
  std::vector<TensorSource> sources;
  for (const NetworkLayer& layer : network.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (parameter.tied() || parameter.part != ParameterSpec::Part::kBase) continue;
      sources.push_back({.name = parameter.name,
                         .dtype = DType::kF32,
                         .shape = parameter.shape,
                         .bytes = [&merger, &parameter, index = layer.index] {
                           return merger.Bytes(parameter, index);
                         }});
    }
  }
  std::sort(sources.begin(), sources.end(),
            [](const TensorSource& a, const TensorSource& b) { return a.name < b.name; });
  RETURN_IF_ERROR(WriteSafetensors(files, target, sources, {{"format", "pt"}}).status());
  return CheckBase(*base, job, adapters.base_sha256());
}

}  // namespace stagecoach
