#include "services/cli/trained/text_writer.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "decoding/text_group.h"
#include "services/cli/trained/token_text.h"

namespace stagecoach {
namespace {

absl::StatusOr<int32_t> StopId(const Tokenizer* tokenizer, int64_t vocabulary,
                               const std::string& stop) {
  if (tokenizer == nullptr) {
    const int32_t byte = stop.size() == 1 ? static_cast<unsigned char>(stop.front()) : -1;
    if (byte >= 0 && byte < vocabulary) return byte;
    return absl::InvalidArgumentError(absl::StrCat("--stop: \"", stop, "\" is not one of the ",
                                                   vocabulary, " bytes that the model writes"));
  }
  if (stop == "\n") return tokenizer->end();
  for (int32_t id = 0; id < tokenizer->ids(); ++id) {
    if (tokenizer->piece(id).text == stop) return id;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--stop: \"", stop,
                   "\" is no piece of the tokenizer; `stagecoach tokenizer show` lists them"));
}

// The prompts' texts while they are written.
struct Writing {
  std::vector<TokenText> texts;
  std::vector<WrittenText> written;
  const std::function<bool(int, std::string_view)>& on_text;

  bool goes_on = true;

  bool Tell(int prompt, const std::string& more) {
    written[static_cast<size_t>(prompt)].text += more;
    if (goes_on && !more.empty()) goes_on = on_text(prompt, more);
    return goes_on;
  }
  bool Add(const TextGroup::Token& token) {
    ++written[static_cast<size_t>(token.text)].tokens;
    return Tell(token.text, texts[static_cast<size_t>(token.text)].Add(token.token));
  }
};

// So many prompts are continued together: more would need memory, and gain little.
constexpr size_t kTogether = 64;

using Prompts = std::span<const std::vector<int32_t>>;

Prompts GroupAt(size_t first, Prompts prompts) {
  return prompts.subspan(first, std::min(kTogether, prompts.size() - first));
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
    group.Take(candidates);
    for (const TextGroup::Token& token : group.TakeNew()) {
      if (!writing->Add({first + token.text, token.token})) return false;
    }
  }
  for (int i = 0; i < static_cast<int>(prompts.size()); ++i) {
    writing->Tell(first + i, writing->texts[static_cast<size_t>(first + i)].Finish());
    writing->written[static_cast<size_t>(first + i)].stopped = group.stopped(i);
  }
  return writing->goes_on;
}

int64_t MostRowsOfGroups(const TextOptions& options, Prompts prompts) {
  int64_t most = 0;
  for (size_t i = 0; i < prompts.size(); i += kTogether) {
    most = std::max(most, TextGroup::MostRows(options, GroupAt(i, prompts)));
  }
  return most;
}

}  // namespace

absl::StatusOr<std::vector<WrittenText>> WriteTexts(
    const DecodingNetwork& network, const std::vector<std::string>& prompts,
    const WritingOptions& options, const std::function<bool(int, std::string_view)>& on_text) {
  if (prompts.empty()) return std::vector<WrittenText>();
  const Tokenizer* const tokenizer = network.tokenizer.get();
  Writing writing{
      .texts = {}, .written = std::vector<WrittenText>(prompts.size()), .on_text = on_text};
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& prompt : prompts) {
    writing.texts.emplace_back(tokenizer, network.trained.network.classes());
    absl::StatusOr<std::vector<int32_t>> begun = writing.texts.back().Begin(prompt);
    if (prompts.size() > 1) begun = Annotate(begun, absl::StrCat("prompt ", ids.size() + 1));
    ASSIGN_OR_RETURN(ids.emplace_back(), std::move(begun));
  }
  TextOptions texts{.most_tokens = options.tokens,
                    .context = network.context,
                    .sample = options.temperature > 0,
                    .seed = options.seed};
  for (const std::string& stop : options.stops) {
    ASSIGN_OR_RETURN(texts.stops.emplace_back(),
                     StopId(tokenizer, network.trained.network.classes(), stop));
  }
  const StepChoice choice{.options = {.sample = texts.sample,
                                      .temperature = options.temperature,
                                      .top_k = options.top_k,
                                      .top_p = options.top_p}};
  const int64_t pool_rows = MostRowsOfGroups(texts, ids);
  ASSIGN_OR_RETURN(const std::unique_ptr<TokenModel> model, network.Model(pool_rows));
  RowPool pool(static_cast<int32_t>(pool_rows));
  for (size_t first = 0; first < ids.size(); first += kTogether) {
    texts.first_text = static_cast<int64_t>(first);
    ASSIGN_OR_RETURN(const bool goes_on,
                     WriteGroup(*model, choice, texts, GroupAt(first, ids), &pool, &writing));
    if (!goes_on) break;
  }
  return std::move(writing.written);
}

}  // namespace stagecoach
