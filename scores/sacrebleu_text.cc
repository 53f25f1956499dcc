#include "scores/sacrebleu_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace stagecoach {
namespace {

constexpr char kVersion[] = "2.6.0";  // whose numbers these are

std::string Signature(int64_t references, const std::string& own) {
  return absl::StrCat("nrefs:", references, "|case:mixed|", own, "|version:", kVersion);
}

}  // namespace

std::string BleuSignature(const BleuOptions& options, int64_t references) {
  const char* const tokenizer = options.tokenizer == BleuTokenizer::k13a ? "13a" : "none";
  return Signature(references, absl::StrCat("eff:no|tok:", tokenizer, "|smooth:exp"));
}

std::string ChrfSignature(int64_t references) {
  return Signature(references, "eff:yes|nc:6|nw:0|space:no");
}

std::string CorpusBleuSignature() { return BleuSignature(BleuOptions(), 1); }
std::string CorpusChrfSignature() { return ChrfSignature(1); }

std::string BleuLine(const BleuScore& score, const std::string& signature, int digits) {
  const std::string precisions = absl::StrJoin(
      score.precisions, "/",
      [](std::string* text, double precision) { absl::StrAppendFormat(text, "%.1f", precision); });
  const BleuCounts& counts = score.counts;
  const double ratio = counts.reference_length == 0
                           ? 0
                           : static_cast<double>(counts.hypothesis_length) /
                                 static_cast<double>(counts.reference_length);
  return absl::StrFormat("%s|%s = %.*f %s (BP = %.3f ratio = %.3f hyp_len = %d ref_len = %d)",
                         kBleuName, signature, digits, score.score, precisions,
                         score.brevity_penalty, ratio, counts.hypothesis_length,
                         counts.reference_length);
}

std::string ChrfLine(double score, const std::string& signature, int digits) {
  return absl::StrFormat("%s|%s = %.*f", kChrfName, signature, digits, score);
}

}  // namespace stagecoach
