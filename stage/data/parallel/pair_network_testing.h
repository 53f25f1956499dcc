// For tests of parallel text: a network of its inputs alone, and a tokenizer of single letters.
#ifndef STAGECOACH_STAGE_DATA_PARALLEL_PAIR_NETWORK_TESTING_H_
#define STAGECOACH_STAGE_DATA_PARALLEL_PAIR_NETWORK_TESTING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "network/network.h"
#include "stage/tokens/model_file_testing.h"

namespace stagecoach {

// Ids: padding 0, unknown 1, begin 2, end 3, a space 4, '!' 5, ..., 'a' 69, ..., '~' 98, <2de> 99,
// <2fr> 100. Each word has a space in front of it.
inline std::vector<Piece> PairPieces() {
  std::vector<Piece> pieces = LetterPieces();
  pieces.push_back({"<2de>", 0, PieceType::kUserDefined});
  pieces.push_back({"<2fr>", 0, PieceType::kUserDefined});
  return pieces;
}
inline constexpr int32_t kPairPad = 0, kPairBegin = 2, kPairEnd = 3, kPairSpace = 4;
inline constexpr int32_t kPairDe = 99, kPairFr = 100;
inline constexpr int64_t kPairVocabulary = 101;
inline int32_t PairLetter(char c) { return c - '!' + 5; }

struct PairNetworkForm {
  int64_t source = 40, target = 40;
  int64_t vocabulary = kPairVocabulary;
  bool named = true;  // extents have names
  std::optional<int64_t> ignored = kPairPad;
};

inline Network PairNetwork(const PairNetworkForm& form) {
  const auto ids = [&form](int64_t extent, Length length) {
    return Wire{.type = {Element::kIds, Leading::kSamples,
                         Shape::Of({{extent, form.named ? length : Length::kNone}})}};
  };
  Network network;
  network.inputs = {{"source", form.vocabulary},
                    {"source_length", form.source + 1},
                    {"tokens", form.vocabulary},
                    {"targets", form.vocabulary}};
  network.wires = {ids(form.source, Length::kSource),
                   Wire{.type = {Element::kIds, Leading::kSamples, {}}},
                   ids(form.target, Length::kTarget), ids(form.target, Length::kTarget)};
  network.objective.ignored = form.ignored;
  return network;
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_PARALLEL_PAIR_NETWORK_TESTING_H_
