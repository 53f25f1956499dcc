#include "stage/executor/shown_answers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/numbers/bfloat16.h"

namespace stagecoach {
namespace {

// Rows of logits as they are on the device.
absl::StatusOr<std::vector<float>> LogitsOf(const Tensor& logits, Backend& backend) {
  std::vector<float> numbers(static_cast<size_t>(logits.shape().elements()));
  if (logits.dtype() == DType::kF32) {
    backend.CopyToHost(logits, std::as_writable_bytes(std::span(numbers)));
    RETURN_IF_ERROR(backend.Synchronize());
    return numbers;
  }
  CHECK(logits.dtype() == DType::kBF16) << DTypeName(logits.dtype());
  std::vector<Bfloat16> rounded(numbers.size());
  backend.CopyToHost(logits, std::as_writable_bytes(std::span(rounded)));
  RETURN_IF_ERROR(backend.Synchronize());
  std::transform(rounded.begin(), rounded.end(), numbers.begin(),
                 [](Bfloat16 value) { return static_cast<float>(value); });
  return numbers;
}

ShownAnswer AnswerOf(std::span<const float> logits, int32_t label) {
  ShownAnswer answer{.label = label};
  const auto highest = std::max_element(logits.begin(), logits.end());
  answer.answer = static_cast<int32_t>(highest - logits.begin());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - *highest);
  answer.probability = std::isfinite(sum) ? 1 / sum : std::numeric_limits<double>::quiet_NaN();
  return answer;
}

}  // namespace

int64_t ShownSamples(const RunCommand& command, int64_t batch_size, const Network& network) {
  const bool shows = command.work == WorkKind::kEvaluate && !command.average &&
                     command.evaluation_batch < static_cast<uint64_t>(kShownPictures) &&
                     AnswersForImages(network);
  if (!shows) return 0;
  const int64_t before = static_cast<int64_t>(command.evaluation_batch) * batch_size;
  return std::clamp<int64_t>(kShownPictures - before, 0, batch_size);
}

LookAtLogits GatherAnswers(int64_t samples, Backend& backend, std::vector<ShownAnswer>* answers) {
  if (samples == 0) return nullptr;
  return [samples, &backend, answers](const Tensor& logits, const Tensor& labels) -> absl::Status {
    const int64_t wanted = std::min(labels.elements(), samples - std::ssize(*answers));
    if (wanted <= 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::vector<ShownAnswer> more,
                     AnswersOf(logits, labels, wanted, backend));
    answers->insert(answers->end(), more.begin(), more.end());
    return absl::OkStatus();
  };
}

absl::StatusOr<std::vector<ShownAnswer>> AnswersOf(const Tensor& logits, const Tensor& labels,
                                                   int64_t samples, Backend& backend) {
  const auto all = static_cast<size_t>(labels.shape().elements());
  CHECK(samples >= 0 && samples <= static_cast<int64_t>(all)) << samples << " of " << all;
  std::vector<int32_t> right(all);
  backend.CopyToHost(labels, std::as_writable_bytes(std::span(right)));
  ASSIGN_OR_RETURN(const std::vector<float> numbers, LogitsOf(logits, backend));
  const size_t classes = numbers.size() / all;
  std::vector<ShownAnswer> answers;
  for (size_t i = 0; i < static_cast<size_t>(samples); ++i) {
    answers.push_back(AnswerOf(std::span(numbers).subspan(i * classes, classes), right[i]));
  }
  return answers;
}

}  // namespace stagecoach
