// The tables behind WeightNames, one file a family of networks. Each gets our names, layer after
// layer, and sets the parts of every one.
// Errors: INVALID_ARGUMENT: the network is not of the family, or has layers that the other program
//         lacks. The text is the end of "the network ...".
#ifndef STAGECOACH_NETWORK_NAMES_NAME_TABLES_H_
#define STAGECOACH_NETWORK_NAMES_NAME_TABLES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/errors/status.h"
#include "network/layer_builder.h"
#include "network/names/weight_names.h"

namespace stagecoach {

// `program`: torchvision or timm, which have the same names for a resnet; or huggingface.
using NameTable = absl::Status(const Network& network, std::string_view program,
                               WeightTable* table);
NameTable NameResnet, NameVit, NameBert, NameGpt2, NameLlama;

// Sets WeightName::patches of a vit's positions. `names`: ours, of any network.
void MarkPositions(const Network& network, std::vector<WeightName>* names);

// Not a tied parameter, whose owner has one, and no adapter's (network/passes/lora.h): no file of
// other weights holds these.
inline bool HasName(const ParameterSpec& parameter) {
  return !parameter.tied() && parameter.part != ParameterSpec::Part::kAdapter;
}

// A tensor that holds an array of `shape` alone, with the axes in that order.
WeightPart WholeTensor(std::string tensor, const Shape& shape);
// The same, but axis i of the array is axis axes[i] of the tensor.
WeightPart PermutedTensor(std::string tensor, const Shape& shape, std::vector<int> axes);
// [out, in, height, width] for our [out, height, width, in].
WeightPart ConvolutionTensor(std::string tensor, const Shape& shape);
// With ones in front, up to three extents.
WeightPart TensorWithOnes(std::string tensor, const Shape& shape);

// Calls name(path, &entry) for each entry of the layer, from `*next` on. `path`: of its array
// within the layer.
template <typename Name>
absl::Status ForNamesOf(const NetworkLayer& layer, size_t* next, std::vector<WeightName>* names,
                        const Name& name) {
  const size_t prefix = NamePrefix(layer.index).size();
  size_t own = layer.states.size();
  for (const ParameterSpec& parameter : layer.parameters) own += HasName(parameter) ? 1 : 0;
  for (const size_t end = *next + own; *next < end; ++*next) {
    WeightName& entry = (*names)[*next];
    RETURN_IF_ERROR(name(entry.ours.substr(prefix), &entry));
  }
  return absl::OkStatus();
}

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_NAMES_NAME_TABLES_H_
