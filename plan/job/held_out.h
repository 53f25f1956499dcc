// HeldOut: the first held-out pictures or sentences and the network's answers to them, for people to
// look at. Stages tell them beside their reports, if a network gives one class for an image, or
// translates. Code that keeps
// them and passes them on does not look into them. Nothing that is trained depends on them.
// Ownership: plain values; pictures are shared, for they are the largest of them.
// Units:     samples count among the held-out ones, from 0.
#ifndef STAGECOACH_PLAN_JOB_HELD_OUT_H_
#define STAGECOACH_PLAN_JOB_HELD_OUT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "network/network.h"

namespace stagecoach {

inline constexpr int64_t kShownPictures = 24;
// In pixels. All pictures together then have less than 304 KiB, however badly they pack.
inline constexpr int64_t kShownSide = 64;

// PNG files of the samples from 0 on; empty if a picture cannot be read.
using ShownPictures = std::shared_ptr<const std::vector<std::string>>;

struct ShownAnswer {
  int32_t label = 0, answer = 0;  // the right class, and the likeliest one
  double probability = 0;         // of `answer`; NaN if the network's numbers are not finite
};

inline constexpr int64_t kShownTranslations = 8;

struct ShownTranslation {
  int64_t number = 0;  // among the held-out sentences
  std::string source, reference, translation;
  friend bool operator==(const ShownTranslation&, const ShownTranslation&) = default;
};

struct ShownAnswers {
  uint64_t step = 0;                 // done when the network was asked
  std::vector<ShownAnswer> answers;  // of the samples from 0 on
  std::vector<ShownTranslation> translations;
};

// Whether the network gives one class for an image.
bool AnswersForImages(const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_JOB_HELD_OUT_H_
