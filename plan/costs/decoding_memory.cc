#include "plan/costs/decoding_memory.h"

#include <algorithm>

#include "base/errors/check.h"
#include "base/numbers/dtype.h"
#include "base/numbers/saturate.h"
#include "decoding/text_group.h"
#include "network/passes/decoding.h"
#include "plan/data/token_inputs.h"

namespace stagecoach {
namespace {

constexpr int64_t kIdBytes = sizeof(int32_t);
// Arrays of a step's rows: those to compute, those on their way up, those being made.
constexpr int64_t kStepsHeld = 3;
constexpr int64_t kLogitsHeld = 2;  // of the network, and in float32

int64_t BytesOf(const Shape& shape, int64_t times, DType dtype) {
  return SaturatingMultiply(SaturatingMultiply(shape.elements(), DTypeSize(dtype)), times);
}

int64_t BeamOf(const JobSpec& spec) {
  return spec.write.has_value() ? spec.write->translate->beam : spec.evaluation.translate->beam;
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

int64_t MostPromptTokens(const std::string& prompt) {
  constexpr int64_t kMarks = 8;  // of a line: a space in front, its end, what a normalizer adds
  return std::ssize(prompt) + kMarks * (1 + std::count(prompt.begin(), prompt.end(), '\n'));
}

int64_t ComputedSamples(const JobSpec& spec, const Network& network) {
  const int64_t batch = spec.training.batch_size, micro_batches = spec.training.micro_batches;
  if (!spec.write.has_value() || !spec.write->generate.has_value()) return batch;
  const int64_t group = MicroBatchSize(batch, micro_batches, 0), context = ContextOf(network);
  return micro_batches * ((std::max(group, TextGroup::kPieceRows) + context - 1) / context);
}

int64_t PoolRowsOf(const JobSpec& spec, const Network& network) {
  const int64_t batch = spec.training.batch_size;
  if (!spec.write.has_value()) {
    return TranslationGroup::MostRows(TranslationOf(*spec.evaluation.translate, network), batch);
  }
  const WriteSpec& write = *spec.write;
  if (write.translate.has_value()) {
    return TranslationGroup::MostRows(TranslationOf(*write.translate, network), batch);
  }
  const int64_t context = ContextOf(network);
  int64_t most = 1, rows = 0;
  for (size_t i = 0; i < write.lines.size(); ++i) {
    if (static_cast<int64_t>(i) % batch == 0) rows = 0;
    const int64_t tokens = MostPromptTokens(write.lines[i]) + write.generate->tokens;
    rows = SaturatingAdd(rows, 1 + std::min(context, tokens));
    most = std::max(most, rows);
  }
  return most;
}

std::optional<DecodingSizes> DecodingSizesOf(const JobSpec& spec, const Network& network) {
  if (!spec.write.has_value() && !spec.evaluation.translate.has_value()) return std::nullopt;
  const bool generates = spec.write.has_value() && spec.write->generate.has_value();
  const int64_t batch = spec.training.batch_size;
  const absl::StatusOr<DecodingForm> form = DecodingOf(network, PoolRowsOf(spec, network));
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
    bytes = SaturatingAdd(bytes, BytesOf(type.shape, batch, ElementDType(type.element, dtype)));
  }
  // Rows of a step of a group, and of all groups.
  const int64_t group = MicroBatchSize(batch, spec.training.micro_batches, 0);
  const int64_t beam = generates ? 1 : BeamOf(spec);
  const int64_t piece = generates ? std::min(TextGroup::kPieceRows, form->context) : 0;
  const int64_t rows = std::max(group * beam, piece);
  const int64_t all_rows = std::max(batch * beam, spec.training.micro_batches * piece);
  const auto message = [&](int64_t of) {
    return SaturatingMultiply(of, (form->context + 4) * kIdBytes);
  };
  sizes.rows_message = message(rows);
  sizes.rows_held = SaturatingMultiply(message(all_rows), kStepsHeld);
  sizes.logits = kLogitsHeld * SaturatingMultiply(rows, network.classes() * 4);
  return sizes;
}

}  // namespace stagecoach
