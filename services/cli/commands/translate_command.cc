#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "plan/data/parallel_text.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/line_input.h"
#include "services/cli/commands/weight_options.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/trained/translator.h"

namespace stagecoach {
namespace {

// Sentences of one length are translated together, so some are sorted at a time.
constexpr int64_t kBatchesAtATime = 16;

// A job has seen sources with its tags, and those of files without one.
absl::Status CheckTag(const std::string& tag, const JobSpec& spec) {
  std::vector<std::string> tags = spec.data.As<ParallelTextData>().tags;
  if (tags.empty()) tags.emplace_back();
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
  if (std::find(tags.begin(), tags.end(), tag) != tags.end()) return absl::OkStatus();
  std::erase(tags, "");
  return FieldError("--tag", tag,
                    tags.empty() ? "the job was trained without tags: leave it out"
                                 : absl::StrCat("the job was trained with ",
                                                absl::StrJoin(tags, ", "), ": give one of them"));
}

nlohmann::ordered_json TranslationJson(const std::string& sentence,
                                       const Translator::Translation& one) {
  nlohmann::ordered_json answer = {
      {"source", sentence}, {"text", one.text}, {"tokens", one.tokens}, {"score", one.score}};
  if (!one.ended) answer["cut_off"] = true;
  return answer;
}

absl::Status TranslateAll(const std::vector<std::string>& sentences, int64_t batch,
                          Translator& translator, CommandContext& context) {
  LinePrinter printer(context, "translations");
  int64_t line = 0;
  const auto goes_on = [&context] { return !context.stop->requested(); };
  const auto on_done = [&](const Translator::Translation& one) {
    const std::string& sentence = sentences[static_cast<size_t>(line++)];
    printer.Print([&] { return one.text; }, TranslationJson(sentence, one));
  };
  while (line < std::ssize(sentences) && goes_on()) {
    const auto first = sentences.begin() + line;
    const auto last = first + std::min<int64_t>(kBatchesAtATime * batch, sentences.end() - first);
    RETURN_IF_ERROR(translator.Translate({first, last}, line + 1, goes_on, on_done));
  }
  if (!goes_on()) return context.stop->reason();
  printer.Finish();
  return absl::OkStatus();
}

absl::Status TranslateFile(const TranslateOptions& options, CommandContext& context) {
  ASSIGN_OR_RETURN(FoundWriter found,
                   FindWriter(Writes::kTranslations, options.weights, options.tokenizer, context,
                              [&](const JobSpec& spec) { return CheckTag(options.tag, spec); }));
  ASSIGN_OR_RETURN(const std::vector<std::string> sentences,
                   ReadAllInputLines(options.input, context));
  const int64_t batch = std::clamp<int64_t>(std::ssize(sentences), 1, options.batch);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Translator> translator,
      Translator::Create(std::move(found.network), {.beam = static_cast<int>(options.beam),
                                                    .length_penalty = options.length_penalty,
                                                    .most_tokens = options.tokens,
                                                    .batch = batch,
                                                    .tag = options.tag}));
  const absl::Status status = TranslateAll(sentences, batch, *translator, context);
  if (!absl::IsInvalidArgument(status)) return status;
  const bool piped = options.input.empty() || options.input == "-";
  return Annotate(status, piped ? "standard input" : ShownName(options.input));
}

}  // namespace

int RunTranslate(const TranslateOptions& options, CommandContext& context) {
  const absl::Status status = TranslateFile(options, context);
  return status.ok() ? kExitSuccess : context.console->Fail(status);
}

}  // namespace stagecoach
