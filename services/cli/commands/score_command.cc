#include <algorithm>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "scores/sacrebleu_text.h"
#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/scores/line_file.h"

namespace stagecoach {
namespace {

using Json = nlohmann::ordered_json;

struct ScoredFiles {
  std::vector<std::string> hypotheses;
  std::vector<std::vector<std::string>> references;  // of each file
};

absl::StatusOr<ScoredFiles> ReadFiles(const ScoreOptions& options) {
  const bool piped = options.hypotheses == "-";
  const std::string name = piped ? "standard input" : options.hypotheses;
  ScoredFiles files;
  ASSIGN_OR_RETURN(files.hypotheses, piped ? ReadLines(std::cin, name) : ReadLineFile(name));
  for (const std::string& path : options.references) {
    ASSIGN_OR_RETURN(std::vector<std::string> lines, ReadLineFile(path));
    if (lines.size() != files.hypotheses.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(ShownName(name), " has ", files.hypotheses.size(), " lines, ",
                       ShownName(path), " has ", lines.size(), "; each line needs its reference"));
    }
    files.references.push_back(std::move(lines));
  }
  return files;
}

// The sum of `count(hypothesis, references)` over the segments.
template <typename Counts, typename Count>
Counts SumOf(const ScoredFiles& files, Count count) {
  Counts sum;
  std::vector<std::string_view> references(files.references.size());
  for (size_t i = 0; i < files.hypotheses.size(); ++i) {
    for (size_t j = 0; j < references.size(); ++j) references[j] = files.references[j][i];
    sum += count(files.hypotheses[i], references);
  }
  return sum;
}

struct Scored {
  std::string line;
  Json said;
};

Scored Bleu(const ScoredFiles& files, const ScoreOptions& options) {
  const BleuOptions bleu{.tokenizer = options.tokenize == "none" ? BleuTokenizer::kNone
                                                                 : BleuTokenizer::k13a};
  const BleuScore score =
      ScoreBleu(SumOf<BleuCounts>(files, [&](const auto& hypothesis, const auto& references) {
        return CountBleu(hypothesis, references, bleu);
      }));
  const std::string signature = BleuSignature(bleu, std::ssize(files.references));
  return {BleuLine(score, signature, options.digits),
          {{"name", kBleuName},
           {"score", score.score},
           {"signature", signature},
           {"precisions", score.precisions},
           {"matches", score.counts.matches},
           {"totals", score.counts.totals},
           {"brevity_penalty", score.brevity_penalty},
           {"hypothesis_length", score.counts.hypothesis_length},
           {"reference_length", score.counts.reference_length}}};
}

Scored Chrf(const ScoredFiles& files, const ScoreOptions& options) {
  const double score =
      ScoreChrf(SumOf<ChrfCounts>(files, [&](const auto& hypothesis, const auto& references) {
        return CountChrf(hypothesis, references);
      }));
  const std::string signature = ChrfSignature(std::ssize(files.references));
  return {ChrfLine(score, signature, options.digits),
          {{"name", kChrfName}, {"score", score}, {"signature", signature}}};
}

// As sacreBLEU: the equals signs below each other.
std::string Aligned(const std::vector<Scored>& scores) {
  size_t most = 0;
  for (const Scored& score : scores) most = std::max(most, score.line.find('='));
  std::string text;
  for (const Scored& score : scores) {
    absl::StrAppend(&text, std::string(most - score.line.find('='), ' '), score.line, "\n");
  }
  return text;
}

std::string ScoreJson(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

void PrintScores(const std::vector<Scored>& scores, const ScoreOptions& options, size_t lines,
                 const CommandContext& context) {
  if (context.output == OutputFormat::kTable) return context.console->Print(Aligned(scores));
  Json all = Json::array();
  for (const Scored& score : scores) {
    if (context.output == OutputFormat::kNdjson) {
      context.console->PrintLine(ScoreJson(score.said, -1));
    }
    all.push_back(score.said);
  }
  if (context.output == OutputFormat::kNdjson) return;
  const Json answer = {{"hypotheses", options.hypotheses},
                       {"references", options.references},
                       {"lines", lines},
                       {"scores", std::move(all)}};
  context.console->PrintLine(ScoreJson(answer, 2));
}

}  // namespace

int RunScore(const ScoreOptions& options, CommandContext& context) {
  const absl::StatusOr<ScoredFiles> files = ReadFiles(options);
  if (!files.ok()) return context.console->Fail(files.status());
  const auto wants = [&metrics = options.metrics](const char* metric) {
    return metrics.empty() || std::find(metrics.begin(), metrics.end(), metric) != metrics.end();
  };
  std::vector<Scored> scores;
  if (wants("bleu")) scores.push_back(Bleu(*files, options));
  if (wants("chrf")) scores.push_back(Chrf(*files, options));
  PrintScores(scores, options, files->hypotheses.size(), context);
  return kExitSuccess;
}

}  // namespace stagecoach
