#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/line_input.h"
#include "services/cli/commands/weight_options.h"
#include "services/cli/commands/writing/stage_writing.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/trained/line_groups.h"
#include "services/cli/trained/text_writer.h"
#include "services/cli/trained/writing_job.h"

namespace stagecoach {
namespace {

nlohmann::ordered_json GeneratedJson(const GenerateOptions& options, const std::string& weights,
                                     const std::string& prompt, const WrittenText& written) {
  nlohmann::ordered_json answer = {{"weights", weights},   {"prompt", prompt},
                                   {"text", written.text}, {"tokens", written.tokens},
                                   {"seed", options.seed}, {"temperature", options.temperature}};
  if (written.stopped) answer["stopped"] = true;
  return answer;
}

// One object on one line. The text's bytes need not be UTF-8; what is not becomes U+FFFD.
void PrintOne(const nlohmann::ordered_json& said, CommandContext& context) {
  context.console->PrintLine(
      said.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace));
}

int64_t PromptsOfGroup(const GenerateOptions& options, const std::vector<std::string>& prompts) {
  return LinesOfGroup(std::ssize(prompts), options.batch, kPromptGroups);
}

// Until a stop; then its reason is the status.
absl::Status WriteHere(const GenerateOptions& options, const FoundWriter& found,
                       const std::vector<std::string>& prompts, const TextEvents& events,
                       const CommandContext& context) {
  RETURN_IF_ERROR(WriteTexts(found.network, prompts,
                             {.tokens = options.tokens,
                              .temperature = options.temperature,
                              .top_k = options.top_k,
                              .top_p = options.top_p,
                              .seed = options.seed,
                              .batch = PromptsOfGroup(options, prompts),
                              .stops = options.stops},
                             events)
                      .status());
  return context.stop->requested() ? context.stop->reason() : absl::OkStatus();
}

// A prompt given by itself. As text it is printed as it comes, otherwise as one object.
absl::Status GenerateOne(const GenerateOptions& options, CommandContext& context) {
  ASSIGN_OR_RETURN(const FoundWriter found,
                   FindWriter(Writes::kText, options.weights, options.tokenizer, context));
  const bool as_it_comes = context.output == OutputFormat::kTable;
  bool begun = false;  // a wrong option is told before
  const auto begin = [&] {
    if (!begun) context.console->Print(options.prompt);
    begun = true;
  };
  TextEvents events;
  events.on_text = [&](int, std::string_view text) {
    if (as_it_comes) {
      begin();
      context.console->Print(std::string(text));
    }
    return !context.stop->requested();
  };
  events.on_whole = [&](int, const WrittenText& text) {
    if (as_it_comes) return begin();
    PrintOne(GeneratedJson(options, found.name, options.prompt, text), context);
  };
  const absl::Status status = WriteHere(options, found, {options.prompt}, events, context);
  if (begun) context.console->Print("\n");
  return status;
}

// Prompts of a file. A text is printed once it and all before it have ended.
absl::Status GenerateAll(const GenerateOptions& options, CommandContext& context) {
  ASSIGN_OR_RETURN(const std::vector<std::string> prompts,
                   ReadAllInputLines(options.prompts, context));
  ASSIGN_OR_RETURN(const FoundWriter found,
                   FindWriter(Writes::kText, options.weights, options.tokenizer, context));
  LinePrinter printer(context, "texts");
  TextEvents events;
  events.on_text = [&](int, std::string_view) { return !context.stop->requested(); };
  events.on_whole = [&](int i, const WrittenText& written) {
    const std::string& prompt = prompts[static_cast<size_t>(i)];
    printer.Print([&] { return prompt + written.text; },
                  GeneratedJson(options, found.name, prompt, written));
  };
  RETURN_IF_ERROR(WriteHere(options, found, prompts, events, context));
  printer.Finish();
  return absl::OkStatus();
}

absl::Status CheckPrompts(const GenerateOptions& options, const std::vector<std::string>& prompts) {
  const bool one = options.prompts.empty();
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (!prompts[i].empty()) continue;
    const std::string place = one ? "" : absl::StrCat("prompt ", i + 1, ": ");
    return absl::InvalidArgumentError(
        absl::StrCat(place, "--prompt: needs at least one character"));
  }
  for (const std::string& stop : options.stops) {
    if (IsUtf8Text(stop)) continue;
    return FieldError("--stop", ShownName(stop),
                      "is no UTF-8 text, and stages get no other; leave it out, or --stages and "
                      "--local-stages");
  }
  return Annotate(CheckLinesOfJob(prompts), one ? "--prompt" : InputName(options.prompts));
}

absl::StatusOr<StageWriting> PrepareOnStages(const GenerateOptions& options,
                                             const std::vector<std::string>& prompts,
                                             CommandContext& context) {
  RETURN_IF_ERROR(CheckPrompts(options, prompts));
  StageWritingRequest request{.write = {.lines = prompts,
                                        .generate = GenerateSpec{.tokens = options.tokens,
                                                                 .temperature = options.temperature,
                                                                 .top_k = options.top_k,
                                                                 .top_p = options.top_p,
                                                                 .stops = options.stops}},
                              .weights = options.weights,
                              .tokenizer = options.tokenizer,
                              .stages = options.stages,
                              .group_lines = PromptsOfGroup(options, prompts),
                              .seed = options.seed,
                              .word = "prompt"};
  for (int64_t i = 1; i <= std::ssize(prompts); ++i) request.numbers.push_back(i);
  return PrepareStageWriting(std::move(request), context);
}

WrittenText TextOf(const WrittenLine& line) {
  return {.text = line.text, .tokens = line.tokens, .stopped = line.ended};
}

// A prompt given by itself. As text it is printed as it comes, otherwise as one object.
int GenerateOneOnStages(const GenerateOptions& options, CommandContext& context) {
  const absl::StatusOr<StageWriting> writing = PrepareOnStages(options, {options.prompt}, context);
  if (!writing.ok()) return context.console->Fail(writing.status());
  const bool as_it_comes = context.output == OutputFormat::kTable;
  bool begun = false;  // what the job waits for is told before
  const auto begin = [&] {
    if (!begun) context.console->Print(options.prompt);
    begun = true;
  };
  WrittenTextEvents events;
  events.on_line = [&](const WrittenLine& line) {
    if (as_it_comes) return begin();
    PrintOne(GeneratedJson(options, writing->weights, options.prompt, TextOf(line)), context);
  };
  if (as_it_comes) {
    events.on_text = [&](int64_t, const std::string& more) {
      begin();
      context.console->Print(more);
    };
  }
  const int code = RunStageWriting(*writing, events, context);
  if (begun) context.console->Print("\n");
  return code;
}

int GenerateAllOnStages(const GenerateOptions& options, CommandContext& context) {
  const absl::StatusOr<std::vector<std::string>> prompts =
      ReadAllInputLines(options.prompts, context);
  if (!prompts.ok()) return context.console->Fail(prompts.status());
  std::optional<StageWriting> writing;
  if (!prompts->empty()) {
    absl::StatusOr<StageWriting> prepared = PrepareOnStages(options, *prompts, context);
    if (!prepared.ok()) return context.console->Fail(prepared.status());
    writing = *std::move(prepared);
  }
  LinePrinter printer(context, "texts");
  int code = kExitSuccess;
  if (writing.has_value()) {
    const auto on_line = [&](const WrittenLine& line) {
      const std::string& prompt = (*prompts)[static_cast<size_t>(line.line)];
      printer.Print([&] { return prompt + line.text; },
                    GeneratedJson(options, writing->weights, prompt, TextOf(line)));
    };
    code = RunStageWriting(*writing, {.on_text = nullptr, .on_line = on_line}, context);
  }
  if (code == kExitSuccess) printer.Finish();
  return code;
}

}  // namespace

int RunGenerate(const GenerateOptions& options, CommandContext& context) {
  const bool one = options.prompts.empty();
  if (options.stages.given()) {
    return one ? GenerateOneOnStages(options, context) : GenerateAllOnStages(options, context);
  }
  const absl::Status status = one ? GenerateOne(options, context) : GenerateAll(options, context);
  return status.ok() ? kExitSuccess : context.console->Fail(status);
}

}  // namespace stagecoach
