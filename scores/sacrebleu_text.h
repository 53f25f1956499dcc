// SacrebleuText: scores with their signatures, in the words of sacreBLEU 2.6.0 (`--format text`). A
// signature says how a score was computed, so that others can compare theirs.
// Threads: pure functions.
#ifndef STAGECOACH_SCORES_SACREBLEU_TEXT_H_
#define STAGECOACH_SCORES_SACREBLEU_TEXT_H_

#include <cstdint>
#include <string>

#include "scores/bleu.h"
#include "scores/chrf.h"

namespace stagecoach {

inline constexpr char kBleuName[] = "BLEU";
inline constexpr char kChrfName[] = "chrF2";

// references: of each segment.
std::string BleuSignature(const BleuOptions& options, int64_t references);
std::string ChrfSignature(int64_t references);
// Of scores made of CountSegment's counts (scores/corpus_counts.h), as those of an evaluation.
std::string CorpusBleuSignature();
std::string CorpusChrfSignature();

// "BLEU|SIGNATURE = 33.9 67.1/… (BP = 1.000 ratio = 1.001 hyp_len = 9 ref_len = 9)". digits: of the
// score, behind the point.
std::string BleuLine(const BleuScore& score, const std::string& signature, int digits);
// "chrF2|SIGNATURE = 58.1".
std::string ChrfLine(double score, const std::string& signature, int digits);

}  // namespace stagecoach

#endif  // STAGECOACH_SCORES_SACREBLEU_TEXT_H_
