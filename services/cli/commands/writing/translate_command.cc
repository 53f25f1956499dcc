#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "plan/data/parallel_text.h"
#include "plan/job/sorted_lines.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/line_input.h"
#include "services/cli/commands/weight_options.h"
#include "services/cli/commands/writing/stage_writing.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/trained/line_groups.h"
#include "services/cli/trained/translator.h"
#include "services/cli/trained/writing_job.h"

namespace stagecoach {
namespace {

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

// The sentences with words, by their places. A sentence without words has an empty translation.
std::vector<int64_t> PlacesWithWords(const std::vector<std::string>& sentences) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < std::ssize(sentences); ++i) {
    const bool blank = absl::StripAsciiWhitespace(sentences[static_cast<size_t>(i)]).empty();
    if (!blank) places.push_back(i);
  }
  return places;
}

int64_t SentencesOfGroup(const TranslateOptions& options, const std::vector<int64_t>& places) {
  return LinesOfGroup(std::ssize(places), options.batch, kSentenceGroups);
}

// Prints translations of sentences with words, which come in their order, and those of the others.
class TranslationPrinter {
 public:
  TranslationPrinter(const std::vector<std::string>& sentences, CommandContext& context)
      : sentences_(sentences), printer_(context, "translations") {}

  void Print(int64_t place, const Translator::Translation& one) {
    PrintBlanksBefore(place);
    PrintNext(one);
  }
  void Finish() {
    PrintBlanksBefore(std::ssize(sentences_));
    printer_.Finish();
  }

 private:
  void PrintBlanksBefore(int64_t place) {
    while (next_ < place) PrintNext({.ended = true});
  }
  void PrintNext(const Translator::Translation& one) {
    const std::string& sentence = sentences_[static_cast<size_t>(next_++)];
    printer_.Print([&] { return one.text; }, TranslationJson(sentence, one));
  }

  const std::vector<std::string>& sentences_;
  LinePrinter printer_;
  int64_t next_ = 0;  // to be printed
};

// The windows, and so the groups, are those of a job on stages (plan/job/sorted_lines.h).
absl::Status TranslateAll(const std::vector<std::string>& sentences,
                          const std::vector<int64_t>& places, int64_t window,
                          Translator& translator, CommandContext& context) {
  TranslationPrinter printer(sentences, context);
  const auto goes_on = [&context] { return !context.stop->requested(); };
  auto next = places.begin();  // of which a translation comes
  const auto on_done = [&](const Translator::Translation& one) { printer.Print(*next++, one); };
  while (next != places.end() && goes_on()) {
    std::vector<std::string> texts;
    std::vector<int64_t> lines;
    for (auto at = next; at != places.end() && std::ssize(texts) < window; ++at) {
      texts.push_back(sentences[static_cast<size_t>(*at)]);
      lines.push_back(*at + 1);
    }
    RETURN_IF_ERROR(translator.Translate(texts, lines, goes_on, on_done));
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
  const std::vector<int64_t> places = PlacesWithWords(sentences);
  const int64_t group = SentencesOfGroup(options, places);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Translator> translator,
      Translator::Create(std::move(found.network), {.beam = static_cast<int>(options.beam),
                                                    .length_penalty = options.length_penalty,
                                                    .most_tokens = options.tokens,
                                                    .batch = group,
                                                    .tag = options.tag}));
  const absl::Status status =
      TranslateAll(sentences, places, kSortedGroups * group, *translator, context);
  if (!absl::IsInvalidArgument(status)) return status;
  return Annotate(status, InputName(options.input));
}

absl::StatusOr<StageWriting> PrepareOnStages(const TranslateOptions& options,
                                             const std::vector<std::string>& sentences,
                                             const std::vector<int64_t>& places,
                                             CommandContext& context) {
  StageWritingRequest request{
      .write = {.tag = options.tag,
                .translate = TranslateSpec{.beam = options.beam,
                                           .length_penalty = options.length_penalty,
                                           .tokens = options.tokens}},
      .weights = options.weights,
      .tokenizer = options.tokenizer,
      .stages = options.stages,
      .group_lines = SentencesOfGroup(options, places),
      .check = [&options](const JobSpec& spec) { return CheckTag(options.tag, spec); }};
  for (const int64_t place : places) {
    request.write.lines.push_back(sentences[static_cast<size_t>(place)]);
    request.numbers.push_back(place + 1);
  }
  RETURN_IF_ERROR(Annotate(CheckLinesOfJob(request.write.lines), InputName(options.input)));
  return PrepareStageWriting(std::move(request), context);
}

int TranslateOnStages(const TranslateOptions& options, CommandContext& context) {
  const absl::StatusOr<std::vector<std::string>> sentences =
      ReadAllInputLines(options.input, context);
  if (!sentences.ok()) return context.console->Fail(sentences.status());
  const std::vector<int64_t> places = PlacesWithWords(*sentences);
  std::optional<StageWriting> writing;
  if (!places.empty()) {
    absl::StatusOr<StageWriting> prepared = PrepareOnStages(options, *sentences, places, context);
    if (!prepared.ok()) return context.console->Fail(prepared.status());
    writing = *std::move(prepared);
  }
  TranslationPrinter printer(*sentences, context);
  int code = kExitSuccess;
  if (writing.has_value()) {
    const auto on_line = [&](const WrittenLine& line) {
      printer.Print(places[static_cast<size_t>(line.line)],
                    {line.text, line.tokens, line.score, line.ended});
    };
    code = RunStageWriting(*writing, {.on_text = nullptr, .on_line = on_line}, context);
  }
  if (code == kExitSuccess) printer.Finish();
  return code;
}

}  // namespace

int RunTranslate(const TranslateOptions& options, CommandContext& context) {
  if (options.stages.given()) return TranslateOnStages(options, context);
  const absl::Status status = TranslateFile(options, context);
  return status.ok() ? kExitSuccess : context.console->Fail(status);
}

}  // namespace stagecoach
