// LoRA: the same network with adapters at some of its linear layers (Hu et al., 2106.09685, section
// 4.1). With weights W an adapter adds scale * B A x to the layer's output, where scale = alpha /
// rank. A has `rank` rows, B as many columns. A begins normally distributed and B with zeros, so the
// network begins as it was. All other parameters are its base: they are frozen.
// Names:  a module is a weight without ".weight", as "model/0003/attention.qkv". A weight that several
//         projections share, as query, key and value do, is a module for each of them and one as a
//         whole. The adapter of "model/0003/attention.query" is "model/0003/attention.query.lora_a
//         .weight" and "….lora_b.weight".
// Errors: INVALID_ARGUMENT with the field's path in the job, its value and the remedy.
#ifndef STAGECOACH_NETWORK_PASSES_LORA_H_
#define STAGECOACH_NETWORK_PASSES_LORA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "network/network.h"
#include "network/network_spec.h"

namespace stagecoach {

inline constexpr int64_t kMostRank = 65536;

struct LoraSpec {
  int64_t rank = 0;  // 0: no adapters
  double alpha = 0;  // 0: the rank
  double dropout = 0;
  std::vector<std::string> targets;  // patterns of modules or of their ends; empty: query and value
  bool given() const { return rank > 0; }
  double scale() const { return alpha == 0 ? 1.0 : alpha / static_cast<double>(rank); }
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("rank", rank, 0, kMostRank);
    visit.Between("alpha", alpha, 0, 1e6);
    visit.Rate("dropout", dropout);
    visit.Field("targets", targets);
  }
  friend bool operator==(const LoraSpec&, const LoraSpec&) = default;
};

// `path`: of the spec in the job: "training.lora".
absl::StatusOr<Network> AddAdapters(Network network, const LoraSpec& spec, const std::string& path);

// An adapter of a network that has some.
struct Adapter {
  int layer = 0;
  std::string module;               // "model/0003/attention.query"
  std::string weight;               // that it adapts: "model/0003/attention.qkv.weight"
  int64_t first_row = 0, rows = 0;  // of that weight: its outputs
  std::string a, b;                 // names of [rank, inputs] and [rows, rank]
  double scale = 1;
};
// In the order of layers and their calls.
std::vector<Adapter> AdaptersOf(const Network& network);
// Has parameters that no checkpoint holds.
bool HasBase(const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_PASSES_LORA_H_
