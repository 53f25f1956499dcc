#include "services/cli/trained/perplexity.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "decoding/choice.h"
#include "decoding/log_softmax.h"
#include "plan/data/token_inputs.h"
#include "stage/tokens/text_lines.h"

namespace stagecoach {
namespace {

constexpr int64_t kBatchTokens = 2048;  // that are computed together

// As a job's text: lines with the end id behind each, or bytes.
absl::StatusOr<std::vector<int32_t>> IdsOf(const DecodingNetwork& network, std::string_view text) {
  std::vector<int32_t> ids;
  if (network.tokenizer == nullptr) {
    const int64_t vocabulary = network.trained.network.classes();
    for (size_t i = 0; i < text.size(); ++i) {
      ids.push_back(static_cast<unsigned char>(text[i]));
      if (ids.back() < vocabulary) continue;
      return absl::InvalidArgumentError(absl::StrCat("byte ", ids.back(), " at ", i,
                                                     " is not among the ", vocabulary,
                                                     " tokens of the model"));
    }
    return ids;
  }
  const auto read = [&text](std::span<uint8_t> into) -> absl::StatusOr<size_t> {
    const size_t count = std::min(into.size(), text.size());
    std::copy_n(text.begin(), count, into.begin());
    text.remove_prefix(count);
    return count;
  };
  const auto take = [&](std::string_view part, bool ends) -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<int32_t> some, network.tokenizer->Encode(part));
    ids.insert(ids.end(), some.begin(), some.end());
    if (ends) ids.push_back(network.tokenizer->end());
    return absl::OkStatus();
  };
  const Tokenizer& tokenizer = *network.tokenizer;
  if (tokenizer.begins_texts()) ids.push_back(tokenizer.begin());
  RETURN_IF_ERROR(tokenizer.line_ends()
                      ? ReadText(read, kMostPartBytes, take)
                      : ReadLines(read, kMostPartBytes, take, tokenizer.cut_space()));
  return ids;
}

// Windows of ids from `first` on, the last one filled up with zeros behind its end.
absl::StatusOr<std::vector<float>> Logits(const TrainedNetwork& trained,
                                          std::span<const int32_t> ids, int64_t windows,
                                          int64_t context) {
  std::vector<int32_t> padded(ids.begin(), ids.end());
  padded.resize(static_cast<size_t>(windows * context), 0);
  const std::vector<int32_t> one_document(padded.size(), 0);  // where documents are kept apart
  Tensors inputs;
  for (const WireId id : trained.cell->wires().loaded) {
    const bool starts = trained.network.input(id).name == kDocumentStarts;
    ASSIGN_OR_RETURN(inputs.emplace_back(),
                     MakeTensor(trained.backend->allocator(), MemoryKind::kActivations, DType::kI32,
                                Shape{windows * context}));
    const std::span<const int32_t> values = starts ? one_document : padded;
    trained.backend->CopyFromHost(std::as_bytes(values), inputs.back());
  }
  return Evaluate(trained, std::move(inputs), windows);
}

}  // namespace

double TextLoss::perplexity() const { return std::exp(loss()); }
double TextLoss::bits_per_byte() const {
  return sum / std::log(2.0) / static_cast<double>(std::max<int64_t>(1, bytes));
}

absl::StatusOr<TextLoss> LossOfText(const DecodingNetwork& network, std::string_view text,
                                    const std::function<bool()>& goes_on) {
  ASSIGN_OR_RETURN(const std::vector<int32_t> ids, IdsOf(network, text));
  if (ids.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", ids.size(), " tokens; at least 2 are needed, to predict one by the other"));
  }
  const int64_t context = network.context, classes = network.trained.network.classes();
  const std::span<const int32_t> targets = std::span(ids).subspan(1);
  TextLoss loss{.bytes = std::ssize(text)};
  const int64_t most = std::max<int64_t>(1, kBatchTokens / context);
  while (loss.tokens < std::ssize(targets)) {
    const int64_t left = std::ssize(targets) - loss.tokens;
    const int64_t windows = std::min(most, (left + context - 1) / context);
    const int64_t count = std::min(left, windows * context);
    const auto first = static_cast<size_t>(loss.tokens);
    ASSIGN_OR_RETURN(
        const std::vector<float> logits,
        Logits(network.trained, std::span(ids).subspan(first, static_cast<size_t>(count)), windows,
               context));
    for (int64_t i = 0; i < count; ++i) {
      const auto row =
          std::span(logits).subspan(static_cast<size_t>(i * classes), static_cast<size_t>(classes));
      RETURN_IF_ERROR(CheckFinite(row));
      loss.sum -= LogSoftmax(row).Of(targets[first + static_cast<size_t>(i)]);
    }
    loss.tokens += count;
    if (!goes_on()) break;
  }
  return loss;
}

}  // namespace stagecoach
