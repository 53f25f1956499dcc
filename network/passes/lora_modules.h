// LoRA modules: the linear calls of a layer that can have an adapter, by the names that a job uses.
// Ownership: plain values.
// Threads:   pure function.
// See:       network/passes/lora.h, "Names".
#ifndef STAGECOACH_NETWORK_PASSES_LORA_MODULES_H_
#define STAGECOACH_NETWORK_PASSES_LORA_MODULES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "network/network.h"

namespace stagecoach {

struct LoraModule {
  std::string name;                 // "model/0003/attention.query"
  size_t call = 0;                  // the linear, in the layer's graph
  size_t parameter = 0;             // its weight, in the layer's parameters
  int64_t first_row = 0, rows = 0;  // of the weight: the module's outputs
  bool whole = true;                // false: one of several projections
};

// Projections stand behind the module of their whole weight, in the order of their rows. A layer that
// has adapters has the modules that it had before.
std::vector<LoraModule> LoraModulesOf(const NetworkLayer& layer);

// Names of the two matrices of a module's adapter.
std::string LoraA(const std::string& module);
std::string LoraB(const std::string& module);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_PASSES_LORA_MODULES_H_
