#include "services/cli/trained/peft_folder.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/names.h"
#include "network/names/weight_names.h"
#include "network/passes/later_rows.h"
#include "plan/data/bucket_path.h"
#include "services/cli/output/new_file.h"
#include "services/cli/trained/adapter_file.h"

namespace stagecoach {
namespace {

constexpr char kWeight[] = ".weight";

// "model.layers.0.self_attn.q_proj" of its weight's name.
std::string ModuleOf(const std::string& tensor) {
  return tensor.substr(0, tensor.size() - (sizeof(kWeight) - 1));
}

std::string LastName(const std::string& module) {
  return module.substr(module.find_last_of('.') + 1);
}

std::string EndOf(const std::string& module) {
  return module.substr(module.find_last_of("./") + 1);
}

// The other program's module that the adapter is of.
absl::StatusOr<const WeightPart*> PartOf(const Adapter& adapter, const WeightName& name) {
  int64_t row = 0;
  for (const WeightPart& part : name.parts) {
    if (row == adapter.first_row && part.rows == adapter.rows) return &part;
    row += part.rows;
  }
  const std::string field =
      absl::StrCat("training.lora.targets: an adapter of ", EndOf(adapter.module), ": ");
  const std::string whole = EndOf(ModuleOf(name.ours));
  return absl::InvalidArgumentError(
      name.parts.size() > 1
          ? absl::StrCat(field, "peft has one for each of query, key and value: train those")
          : absl::StrCat(field, "peft has one for all of ",
                         LastName(ModuleOf(name.parts.front().tensor)), ": train ", whole));
}

struct PeftModule {
  std::string name;
  const Adapter* adapter;
};

// What peft has to know of the modules.
struct PeftModules {
  std::vector<PeftModule> modules;
  std::vector<std::string> targets;
  bool transposed = false;  // weights are [in, out] there
};

// Ends of names where these mean the adapted modules and no others; else whole names.
std::vector<std::string> TargetsOf(const std::vector<PeftModule>& modules,
                                   const std::vector<WeightName>& names) {
  std::map<std::string, int64_t> all, adapted;  // by the last part of the name
  for (const WeightName& name : names) {
    for (const WeightPart& part : name.parts) {
      if (part.shape.rank() == 2) ++all[LastName(ModuleOf(part.tensor))];
    }
  }
  for (const PeftModule& module : modules) ++adapted[LastName(module.name)];
  const bool ends = std::all_of(adapted.begin(), adapted.end(), [&all](const auto& entry) {
    return all.at(entry.first) == entry.second;
  });
  std::vector<std::string> targets;
  if (ends) {
    for (const auto& [name, count] : adapted) targets.push_back(name);
  } else {
    for (const PeftModule& module : modules) targets.push_back(module.name);
  }
  return targets;
}

absl::StatusOr<PeftModules> ModulesOf(const Network& network,
                                      const std::vector<Adapter>& adapters) {
  ASSIGN_OR_RETURN(const WeightTable table,
                   Annotate(WeightNames(network, kHuggingFaceNames), "--names"));
  PeftModules found;
  for (const Adapter& adapter : adapters) {
    const auto name =
        std::find_if(table.names.begin(), table.names.end(),
                     [&adapter](const WeightName& one) { return one.ours == adapter.weight; });
    ASSIGN_OR_RETURN(const WeightPart* const part, PartOf(adapter, *name));
    found.transposed = found.transposed || part->axes == std::vector{1, 0};
    found.modules.push_back({ModuleOf(part->tensor), &adapter});
  }
  found.targets = TargetsOf(found.modules, table.names);
  return found;
}

// A whole number as one, as peft writes its own.
nlohmann::ordered_json NumberOf(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return static_cast<int64_t>(value);
  return value;
}

// The folder that from_pretrained loads; null: the base is none of Hugging Face's.
nlohmann::ordered_json BaseOf(const InitializeSpec& initialize) {
  if (initialize.names != kHuggingFaceNames || IsClusterPath(initialize.from)) return nullptr;
  const bool file = initialize.from.ends_with(".safetensors") || initialize.from.ends_with(".json");
  return file ? FolderOf(initialize.from) : initialize.from;
}

// A network that sees later tokens writes no text; peft has no name for what it does.
nlohmann::ordered_json TaskOf(const Network& network) {
  if (!ReaderOfLaterRows(network).empty()) return nullptr;
  return "CAUSAL_LM";
}

std::string ConfigText(const JobSpec& job, const Network& network, const PeftModules& found) {
  const LoraSpec& lora = job.training.lora;
  const nlohmann::ordered_json config = {
      {"peft_type", "LORA"},
      {"task_type", TaskOf(network)},
      {"base_model_name_or_path", BaseOf(job.initialize)},
      {"r", lora.rank},
      {"lora_alpha", NumberOf(lora.alpha == 0 ? static_cast<double>(lora.rank) : lora.alpha)},
      {"lora_dropout", lora.dropout},
      {"target_modules", found.targets},
      {"bias", "none"},
      {"fan_in_fan_out", found.transposed},
      {"init_lora_weights", true},
      {"inference_mode", true}};
  return config.dump(2, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

absl::Status WriteAdapters(FileSystem& files, const std::string& path, const PeftModules& found,
                           AdapterFile& adapters) {
  std::vector<float> values;
  std::vector<TensorSource> sources;
  const auto add = [&](const PeftModule& module, const char* name, const std::string& ours) {
    sources.push_back({.name = absl::StrCat("base_model.model.", module.name, name, kWeight),
                       .dtype = DType::kF32,
                       .shape = adapters.ShapeOf(ours),
                       .bytes = [&, ours]() -> absl::StatusOr<std::span<const std::byte>> {
                         ASSIGN_OR_RETURN(values, adapters.Read(ours));
                         return std::as_bytes(std::span<const float>(values));
                       }});
  };
  for (const PeftModule& module : found.modules) {
    add(module, ".lora_A", module.adapter->a);
    add(module, ".lora_B", module.adapter->b);
  }
  std::sort(sources.begin(), sources.end(),
            [](const TensorSource& a, const TensorSource& b) { return a.name < b.name; });
  return WriteSafetensors(files, path, sources, {{"format", "pt"}}).status();
}

}  // namespace

absl::Status WritePeftFolder(FileSystem& files, const JobSpec& job,
                             const std::string& adapters_file, const std::string& target) {
  ASSIGN_OR_RETURN(const Network network, ExpandJob(job));
  ASSIGN_OR_RETURN(AdapterFile adapters, AdapterFile::Open(files, adapters_file, network));
  ASSIGN_OR_RETURN(const PeftModules found, ModulesOf(network, adapters.adapters()));
  return WriteNewFolder(files, target, [&](const std::string& folder) -> absl::Status {
    RETURN_IF_ERROR(
        WriteText(files, JoinPath(folder, "adapter_config.json"), ConfigText(job, network, found)));
    return WriteAdapters(files, JoinPath(folder, "adapter_model.safetensors"), found, adapters);
  });
}

}  // namespace stagecoach
