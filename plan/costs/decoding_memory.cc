#include "plan/costs/decoding_memory.h"

#include <algorithm>

#include "base/errors/check.h"
#include "base/numbers/dtype.h"
#include "network/passes/decoding.h"
#include "plan/costs/saturate.h"

namespace stagecoach {
namespace {

constexpr int64_t kIdBytes = sizeof(int32_t);
// Arrays of a step's rows: those to compute, those on their way up, those being made.
constexpr int64_t kStepsHeld = 3;
constexpr int64_t kLogitsHeld = 2;  // of the network, and in float32

int64_t BytesOf(const Shape& shape, int64_t times, DType dtype) {
  return SaturatingMultiply(SaturatingMultiply(shape.elements(), DTypeSize(dtype)), times);
}

}  // namespace

TranslationOptions TranslationOf(const TranslateSpec& translate, const Network& network) {
  TranslationOptions options;
  options.context = network.wire(network.InputNamed(kTokens)).type.shape[0];
  options.beam = {.beam = static_cast<int>(translate.beam),
                  .length_penalty = translate.length_penalty,
                  .most_tokens = translate.tokens == 0
                                     ? options.context
                                     : std::min(translate.tokens, options.context),
                  .least_tokens = 1,
                  .only_best = true};
  return options;
}

int64_t DecodingSizes::Of(int first, int last, int64_t evaluation) const {
  int64_t bytes = SaturatingAdd(evaluation, rows_held);
  for (int i = first; i < last; ++i) {
    bytes = SaturatingAdd(bytes, layers[static_cast<size_t>(i)]);
  }
  return last == static_cast<int>(layers.size()) ? SaturatingAdd(bytes, logits) : bytes;
}

std::optional<DecodingSizes> DecodingSizesOf(const JobSpec& spec, const Network& network) {
  if (!spec.evaluation.translate.has_value()) return std::nullopt;
  const TranslationOptions options = TranslationOf(*spec.evaluation.translate, network);
  const int64_t sentences = spec.training.batch_size;
  const int64_t pool = TranslationGroup::MostRows(options, sentences);
  const absl::StatusOr<DecodingForm> form = DecodingOf(network, pool);
  CHECK_OK(form.status());
  const DType dtype = ComputeDType(network.precision);
  DecodingSizes sizes;
  for (const NetworkLayer& layer : form->target.layers) {
    int64_t& bytes = sizes.layers.emplace_back(0);
    for (size_t i = 0; i < layer.states.size(); ++i) {
      const ValueType& type = layer.lists->value(layer.lists->states[i]).type;
      bytes = SaturatingAdd(bytes,
                            BytesOf(layer.states[i].shape, 1, ElementDType(type.element, dtype)));
    }
  }
  for (const DecodingForm::Held& held : form->held) {
    const ValueType& type = form->source.wire(held.made).type;
    int64_t& bytes = sizes.layers[static_cast<size_t>(held.layer)];
    bytes = SaturatingAdd(bytes, BytesOf(type.shape, sentences, ElementDType(type.element, dtype)));
  }
  const int64_t beam = options.beam.beam;
  const int64_t samples = MicroBatchSize(sentences, spec.training.micro_batches, 0);
  const auto message = [&](int64_t of) {
    return SaturatingMultiply(of, (beam * (options.context + 3) + 1) * kIdBytes);
  };
  sizes.rows_message = message(samples);
  sizes.rows_held = SaturatingMultiply(message(sentences), kStepsHeld);
  sizes.logits = kLogitsHeld * SaturatingMultiply(samples * beam, network.classes() * 4);
  return sizes;
}

}  // namespace stagecoach
