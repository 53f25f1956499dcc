#include "services/cli/trained/text_writer.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "decoding/text_group.h"
#include "stage/tokens/token_text.h"

namespace stagecoach {
namespace {

// The prompts' texts while they are written.
struct Writing {
  std::vector<TokenText> texts;
  std::vector<WrittenText> written;
  std::vector<bool> whole;
  const TextEvents& events;

  bool goes_on = true;
  size_t told = 0;  // texts that on_whole got

  bool Tell(int prompt, const std::string& more) {
    written[static_cast<size_t>(prompt)].text += more;
    if (goes_on && !more.empty()) goes_on = events.on_text(prompt, more);
    return goes_on;
  }
  void End(int prompt, bool stopped) {
    Tell(prompt, texts[static_cast<size_t>(prompt)].Finish());
    written[static_cast<size_t>(prompt)].stopped = stopped;
    whole[static_cast<size_t>(prompt)] = true;
    for (; goes_on && told < whole.size() && whole[told]; ++told) {
      if (events.on_whole) events.on_whole(static_cast<int>(told), written[told]);
    }
  }
  bool Add(const TextGroup::Token& token) {
    ++written[static_cast<size_t>(token.text)].tokens;
    return Tell(token.text, texts[static_cast<size_t>(token.text)].Add(token.token));
  }
};

using Prompts = std::span<const std::vector<int32_t>>;

Prompts GroupAt(size_t first, size_t batch, Prompts prompts) {
  return prompts.subspan(first, std::min(batch, prompts.size() - first));
}

// The prompts from `first` on. False: the reader has seen enough.
absl::StatusOr<bool> WriteGroup(TokenModel& model, const StepChoice& choice,
                                const TextOptions& options, Prompts prompts, RowPool* pool,
                                Writing* writing) {
  TextGroup group(options, prompts, pool);
  const int first = static_cast<int>(options.first_text);
  while (!group.over()) {
    ASSIGN_OR_RETURN(const RowBatch rows, group.Rows());
    ASSIGN_OR_RETURN(const CandidatesOfRows candidates, model.Step(0, rows, choice));
    RETURN_IF_ERROR(group.Take(candidates));
    for (const TextGroup::Token& token : group.TakeNew()) {
      if (!writing->Add({first + token.text, token.token})) return false;
    }
    for (int i = 0; i < static_cast<int>(prompts.size()); ++i) {
      const bool ends = !group.live(i) && !writing->whole[static_cast<size_t>(first + i)];
      if (ends) writing->End(first + i, group.stopped(i));
    }
  }
  return writing->goes_on;
}

int64_t MostRowsOfGroups(const TextOptions& options, size_t batch, Prompts prompts) {
  int64_t most = 0;
  for (size_t i = 0; i < prompts.size(); i += batch) {
    most = std::max(most, TextGroup::MostRows(options, GroupAt(i, batch, prompts)));
  }
  return most;
}

}  // namespace

absl::StatusOr<std::vector<WrittenText>> WriteTexts(const DecodingNetwork& network,
                                                    const std::vector<std::string>& prompts,
                                                    const WritingOptions& options,
                                                    const TextEvents& events) {
  if (prompts.empty()) return std::vector<WrittenText>();
  const Tokenizer* const tokenizer = network.tokenizer.get();
  Writing writing{.texts = {},
                  .written = std::vector<WrittenText>(prompts.size()),
                  .whole = std::vector<bool>(prompts.size()),
                  .events = events};
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& prompt : prompts) {
    writing.texts.emplace_back(tokenizer, network.trained.network.classes());
    const char* const option = prompts.size() > 1 ? "--prompts" : "--prompt";
    absl::StatusOr<std::vector<int32_t>> begun = writing.texts.back().Begin(option, prompt);
    if (prompts.size() > 1) begun = Annotate(begun, absl::StrCat("prompt ", ids.size() + 1));
    ASSIGN_OR_RETURN(ids.emplace_back(), std::move(begun));
  }
  TextOptions texts{.most_tokens = options.tokens,
                    .context = network.context,
                    .sample = options.temperature > 0,
                    .seed = options.seed};
  for (const std::string& stop : options.stops) {
    ASSIGN_OR_RETURN(texts.stops.emplace_back(),
                     StopToken(tokenizer, network.trained.network.classes(), "--stop", stop));
  }
  if (const int32_t end = EndOfText(tokenizer); end >= 0) texts.stops.push_back(end);
  const StepChoice choice{.options = {.sample = texts.sample,
                                      .temperature = options.temperature,
                                      .top_k = options.top_k,
                                      .top_p = options.top_p}};
  CHECK_GT(options.batch, 0);
  const auto batch = static_cast<size_t>(options.batch);
  const int64_t pool_rows = MostRowsOfGroups(texts, batch, ids);
  ASSIGN_OR_RETURN(const std::unique_ptr<TokenModel> model,
                   network.Model(pool_rows, std::min(options.batch, std::ssize(ids))));
  RowPool pool(static_cast<int32_t>(pool_rows));
  for (size_t first = 0; first < ids.size(); first += batch) {
    texts.first_text = static_cast<int64_t>(first);
    ASSIGN_OR_RETURN(const bool goes_on, WriteGroup(*model, choice, texts,
                                                    GroupAt(first, batch, ids), &pool, &writing));
    if (!goes_on) break;
  }
  return std::move(writing.written);
}

}  // namespace stagecoach
