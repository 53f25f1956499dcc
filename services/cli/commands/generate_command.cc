#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/errors/status.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/line_input.h"
#include "services/cli/commands/weight_options.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/trained/text_writer.h"

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

absl::Status Generate(const GenerateOptions& options, CommandContext& context) {
  const bool one = options.prompts.empty();  // given by itself
  std::vector<std::string> prompts = {options.prompt};
  if (!one) {
    ASSIGN_OR_RETURN(prompts, ReadAllInputLines(options.prompts, context));
  }
  ASSIGN_OR_RETURN(const FoundWriter found,
                   FindWriter(Writes::kText, options.weights, options.tokenizer, context));
  const bool as_it_comes = one && context.output == OutputFormat::kTable;
  if (as_it_comes) context.console->Print(options.prompt);
  const auto on_text = [&](int, std::string_view text) {
    if (as_it_comes) context.console->Print(std::string(text));
    return !context.stop->requested();
  };
  const absl::StatusOr<std::vector<WrittenText>> written =
      WriteTexts(found.network, prompts,
                 {.tokens = options.tokens,
                  .temperature = options.temperature,
                  .top_k = options.top_k,
                  .top_p = options.top_p,
                  .seed = options.seed,
                  .stops = options.stops},
                 on_text);
  if (as_it_comes) context.console->Print("\n");
  RETURN_IF_ERROR(written.status());
  if (context.stop->requested()) return context.stop->reason();
  if (as_it_comes) return absl::OkStatus();
  if (one) {
    PrintOne(GeneratedJson(options, found.name, prompts[0], (*written)[0]), context);
    return absl::OkStatus();
  }
  LinePrinter printer(context, "texts");
  for (size_t i = 0; i < written->size(); ++i) {
    printer.Print([&] { return prompts[i] + (*written)[i].text; },
                  GeneratedJson(options, found.name, prompts[i], (*written)[i]));
  }
  printer.Finish();
  return absl::OkStatus();
}

}  // namespace

int RunGenerate(const GenerateOptions& options, CommandContext& context) {
  const absl::Status status = Generate(options, context);
  return status.ok() ? kExitSuccess : context.console->Fail(status);
}

}  // namespace stagecoach
