#include "stage/data/masked_tokens.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/numbers/random.h"
#include "base/utf8.h"
#include "plan/data/token_inputs.h"

namespace stagecoach {
namespace {

// Marks of the draws' counters, apart from those of pictures and permutations.
constexpr uint32_t kTraining = 0x3a5c0000, kEvaluation = 0x3a5d0000;

PhiloxCounter CounterOf(const MaskPlace& place, uint64_t row) {
  const uint64_t epoch = place.epoch.value_or(0);
  const uint32_t mark = place.epoch.has_value() ? kTraining : kEvaluation;
  return {static_cast<uint32_t>(row + (place.sample >> 32 << 16)),
          static_cast<uint32_t>(place.sample), static_cast<uint32_t>(epoch),
          static_cast<uint32_t>(epoch >> 32) ^ mark};
}

int32_t Choose(uint32_t draw, const std::vector<int32_t>& tokens) {
  return tokens[static_cast<size_t>(uint64_t{draw} * tokens.size() >> 32)];
}

// Never masked. A file may name its marks without making them control tokens.
bool IsControl(const Tokenizer& tokenizer, int32_t id) {
  const int32_t marks[] = {tokenizer.begin(), tokenizer.end(), tokenizer.pad(), tokenizer.mask(),
                           tokenizer.unknown()};
  return tokenizer.piece(id).type == PieceType::kControl ||
         std::find(std::begin(marks), std::end(marks), id) != std::end(marks);
}

// Masked ones of a word that is ignored would not count.
absl::Status CheckIgnored(int64_t ignored, const Tokenizer& tokenizer) {
  if (ignored >= tokenizer.ids()) return absl::OkStatus();
  const auto id = static_cast<int32_t>(ignored);
  const Piece& piece = tokenizer.piece(id);
  if (IsControl(tokenizer, id) || piece.type == PieceType::kUnused) return absl::OkStatus();
  return FieldError(
      "model.objective.cross_entropy.ignore_index", absl::StrCat(ignored),
      absl::StrCat("is the token \"", ShownName(piece.text),
                   "\" of the tokenizer, which would never be learnt: set it to ",
                   tokenizer.pad() < 0 ? "the id of a control token"
                                       : absl::StrCat("the padding, ", tokenizer.pad())));
}

}  // namespace

void MaskedTokens::Add(std::span<const int32_t> tokens, const MaskPlace& place,
                       std::vector<int32_t>* inputs, std::vector<int32_t>* targets) const {
  const Rule& rule = *rule_;
  const uint32_t share = DropoutThreshold(rule.share);
  constexpr uint32_t kMaskBelow = 0xcccccccc, kAnyBelow = 0xe6666666;  // 80 %, 90 %
  if (rule.begin.has_value()) {
    inputs->push_back(*rule.begin);
    targets->push_back(rule.ignored);
  }
  for (size_t row = 0; row < tokens.size(); ++row) {
    const int32_t token = tokens[row];
    const auto draws = Philox4x32(CounterOf(place, row), SeedKey(rule.seed));
    if (draws[0] >= share || rule.control.at(static_cast<size_t>(token))) {
      inputs->push_back(token);
      targets->push_back(rule.ignored);
      continue;
    }
    targets->push_back(token);
    inputs->push_back(draws[1] < kMaskBelow  ? rule.mask
                      : draws[1] < kAnyBelow ? Choose(draws[2], rule.tokens)
                                             : token);
  }
}

std::string MaskedTokens::facts() const { return absl::StrCat("mask ", rule_->mask, "\n"); }

absl::StatusOr<std::optional<MaskedTokens>> MaskedTokensOf(const JobSpec& spec,
                                                           const Network& network,
                                                           const std::string& prefix, double masked,
                                                           const Tokenizer* tokenizer) {
  if (masked == 0) return std::nullopt;
  CHECK(tokenizer != nullptr && network.objective.ignored.has_value()) << "CheckMaskedInputs";
  const std::string field = prefix + ".masked", share = absl::StrCat(masked);
  if (tokenizer->mask() < 0) {
    return FieldError(
        field, share,
        "the tokenizer has no mask token: give a tokenizer.json that has one, as BERT's "
        "[MASK], by that name or as mask_token of tokenizer_config.json");
  }
  RETURN_IF_ERROR(CheckIgnored(*network.objective.ignored, *tokenizer));
  MaskedTokens::Rule rule{.seed = spec.seed,
                          .share = masked,
                          .mask = tokenizer->mask(),
                          .ignored = static_cast<int32_t>(*network.objective.ignored)};
  if (tokenizer->begin() >= 0) rule.begin = tokenizer->begin();
  for (int32_t id = 0; id < tokenizer->ids(); ++id) {
    rule.control.push_back(IsControl(*tokenizer, id));
    if (tokenizer->piece(id).type != PieceType::kUnused) rule.tokens.push_back(id);
  }
  if (rule.begin.has_value() && ContextOf(network) < 2) {
    return FieldError(absl::StrCat("model.", spec.network.kind, ".context"), "1",
                      absl::StrCat("must be at least 2 with ", field,
                                   ": the tokenizer's begin token is the first"));
  }
  return MaskedTokens(std::move(rule));
}

}  // namespace stagecoach
