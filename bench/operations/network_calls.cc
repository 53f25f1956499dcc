#include "bench/operations/network_calls.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/check.h"
#include "network/loss_call.h"
#include "network/passes/padded_output.h"

namespace stagecoach {
namespace {

std::string TypesText(const std::vector<ValueType>& types) {
  return absl::StrJoin(types, " ", [](std::string* out, const ValueType& type) {
    absl::StrAppend(out, FormatType(type));
  });
}

// How often something is run for a micro-batch, and with how many samples.
struct Runs {
  int64_t samples = 0, times = 1;
};

class CallCounter {
 public:
  void Count(const Call& call, CallTypes types, const Runs& runs, bool padded_input,
             bool padded_output) {
    Attributes attributes = call.attributes;
    if (attributes.Find("draw") != nullptr) attributes.Set("draw", int64_t{0});
    const std::string key =
        absl::StrCat(call.operation, "|", FormatAttributes(attributes), "|",
                     TypesText(types.inputs), "|", TypesText(types.outputs), "|",
                     TypesText(types.adds), "|", runs.samples, "|", padded_input, padded_output);
    const auto [found, added] = places_.emplace(key, calls_.size());
    if (added) {
      calls_.push_back({.call = {.operation = call.operation, .attributes = call.attributes},
                        .types = std::move(types),
                        .samples = runs.samples,
                        .padded_input = padded_input,
                        .padded_output = padded_output});
    }
    calls_[found->second].times += runs.times;
  }
  // padded: the value among them whose rows are, and its gradient.
  void Count(const LayerLists& lists, const CallList& list, const Runs& runs,
             const std::vector<ValueId>& padded) {
    const auto is_padded = [&](const std::vector<ValueId>& operands) {
      return !operands.empty() && std::count(padded.begin(), padded.end(), operands[0]) > 0;
    };
    for (const ListedCall& listed : list.calls) {
      const Call& call = listed.call;
      Count(call, lists.TypesOf(call), runs, is_padded(call.inputs), is_padded(call.outputs));
    }
  }
  std::vector<NetworkCall> Take() { return std::move(calls_); }

 private:
  std::vector<NetworkCall> calls_;
  std::map<std::string, size_t> places_;
};

void CountLoss(const Network& network, const Runs& runs, CallCounter& counter) {
  LossCall loss = LossCallOf(network, true);
  const bool padded = PaddableOutput(network, network.layers.back()).has_value();
  counter.Count(loss.call, std::move(loss.types), runs, padded, padded);
}

std::vector<ValueId> PaddedValues(const Network& network, const NetworkLayer& layer) {
  const std::optional<ValueId> y = PaddableOutput(network, layer);
  if (!y.has_value()) return {};
  return {*y, layer.lists->output_gradients[0]};
}

void CountForward(const Network& network, size_t layer, const Runs& runs, CallCounter& counter) {
  const NetworkLayer& at = network.layers[layer];
  counter.Count(*at.lists, at.lists->forward, runs, PaddedValues(network, at));
}

void CountBackward(const Network& network, size_t layer, const Runs& runs, CallCounter& counter) {
  const NetworkLayer& at = network.layers[layer];
  counter.Count(*at.lists, at.lists->backward, runs, PaddedValues(network, at));
}

// The head with the loss, chunk by chunk.
void CountChunks(const Network& network, int64_t rows, int64_t chunk_rows, CallCounter& counter) {
  const Network by_rows = HeadByRows(network);
  const size_t head = network.layers.size() - 1;
  for (const Runs& runs : {Runs{chunk_rows, rows / chunk_rows}, Runs{rows % chunk_rows, 1}}) {
    if (runs.samples == 0 || runs.times == 0) continue;
    CountForward(by_rows, head, runs, counter);
    CountLoss(by_rows, runs, counter);
    CountBackward(by_rows, head, runs, counter);
  }
}

}  // namespace

std::vector<NetworkCall> NetworkCalls(const Network& network, int64_t samples,
                                      const std::optional<HeadChunkLimits>& chunks) {
  CallCounter counter;
  const Runs once{.samples = samples};
  const bool chunked = chunks.has_value() && HeadGoesByChunks(network);
  const size_t whole = network.layers.size() - (chunked ? 1 : 0);
  for (size_t layer = 0; layer < whole; ++layer) CountForward(network, layer, once, counter);
  if (chunked) {
    CountChunks(network, HeadRows(network, samples), HeadChunkRows(network, *chunks), counter);
  } else {
    CountLoss(network, once, counter);
  }
  for (size_t layer = whole; layer-- > 0;) CountBackward(network, layer, once, counter);
  return counter.Take();
}

std::string InputsText(const CallTypes& types) { return TypesText(types.inputs); }

int64_t LeastBytes(const CallTypes& types, int64_t samples, DType activation) {
  int64_t ids = 0;
  for (const ValueType& type : types.inputs) {
    if (type.element == Element::kIds) ids += TypeElements(type, samples);
  }
  const auto touched = [&](const ValueType& type) {
    const int64_t bytes = TypeBytes(type, samples, activation);
    const bool looked_up = ids > 0 && type.leading == Leading::kOne && type.shape.rank() == 2;
    if (!looked_up) return bytes;
    return std::min(bytes, ids * (bytes / type.shape[0]));
  };
  int64_t bytes = 0;
  for (const ValueType& type : types.inputs) bytes += touched(type);
  for (const ValueType& type : types.outputs) bytes += touched(type);
  for (const ValueType& type : types.adds) bytes += 2 * touched(type);
  return bytes;
}

double FloorSeconds(double products, double bytes, double flops_per_second,
                    double bytes_per_second) {
  return std::max(products / flops_per_second, bytes / bytes_per_second);
}

}  // namespace stagecoach
