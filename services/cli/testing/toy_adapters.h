// ToyAdapters: exported adapters of a small gpt, and the base that they were trained with. All numbers
// of the base are 1, of A 1 and of B 2, so a weight with an adapter is 9 where they are merged.
#ifndef STAGECOACH_SERVICES_CLI_TESTING_TOY_ADAPTERS_H_
#define STAGECOACH_SERVICES_CLI_TESTING_TOY_ADAPTERS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/testing/temporary_folder.h"
#include "checkpoint/safetensors/safetensors.h"
#include "network/zoo/gpt.h"
#include "plan/data/text.h"
#include "plan/job/job_spec.h"
#include "services/cli/output/job_output.h"
#include "services/common/convert/spec/convert_spec.h"

namespace stagecoach {

// A job that went on with the adapters of another one, so that it has `resume` beside `initialize`.
inline JobSpec ToyAdaptersJob(const std::string& base) {
  JobSpec job;
  job.name = "toy";
  job.network = GptSpec{.layers = 1, .width = 4, .heads = 2, .context = 8, .vocabulary = 256};
  job.data = TextData{.path = "/text"};
  job.training.steps = 10;
  job.training.batch_size = 4;
  job.training.micro_batches = 2;
  job.training.lora = {.rank = 2, .alpha = 4, .targets = {"qkv"}};
  job.initialize.from = base;
  job.resume = {.job = "before"};
  return job;
}

inline void WriteNumbers(const std::string& path, const Network& network,
                         ParameterSpec::Part part) {
  std::vector<TensorSource> sources;
  std::vector<float> values;
  for (const NetworkLayer& layer : network.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (parameter.part != part) continue;
      const float value = absl::StrContains(parameter.name, ".lora_b.") ? 2 : 1;
      sources.push_back({parameter.name, DType::kF32, parameter.shape,
                         [&values, value, size = parameter.shape.elements()] {
                           values.assign(static_cast<size_t>(size), value);
                           return absl::StatusOr<std::span<const std::byte>>(
                               std::as_bytes(std::span<const float>(values)));
                         }});
    }
  }
  CHECK_OK(WriteSafetensors(*PosixFileSystem(), path, sources, {}).status());
}

// Writes base.safetensors, and the export `name`; returns the path of the latter.
inline std::string WriteToyAdapters(const TemporaryFolder& folder, const std::string& name) {
  const JobSpec job = ToyAdaptersJob(folder.File("base.safetensors"));
  const absl::StatusOr<Network> network = ExpandJob(job);
  CHECK_OK(network.status());
  WriteNumbers(job.initialize.from, *network, ParameterSpec::Part::kBase);
  folder.Write(name + "/stagecoach.json", ToJson(ToProto(job), OutputFormat::kJson));
  WriteNumbers(folder.File(name + "/model.safetensors"), *network, ParameterSpec::Part::kAdapter);
  return folder.File(name);
}

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TESTING_TOY_ADAPTERS_H_
