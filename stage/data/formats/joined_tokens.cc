#include "stage/data/formats/joined_tokens.h"

#include <algorithm>
#include <utility>

#include "base/errors/status.h"

namespace stagecoach {

JoinedTokens::JoinedTokens(std::vector<std::shared_ptr<const TextTokens>> parts)
    : parts_(std::move(parts)) {
  int64_t end = 0;
  for (const auto& part : parts_) ends_.push_back(end += part->tokens());
}

absl::Status JoinedTokens::Read(int64_t first, std::span<int32_t> into) const {
  auto i = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), first) - ends_.begin());
  while (!into.empty()) {
    const int64_t begin = i == 0 ? 0 : ends_[i - 1];
    const auto count = static_cast<size_t>(std::min<int64_t>(std::ssize(into), ends_[i] - first));
    if (count > 0) RETURN_IF_ERROR(parts_[i]->Read(first - begin, into.first(count)));
    into = into.subspan(count);
    first += static_cast<int64_t>(count);
    ++i;
  }
  return absl::OkStatus();
}

absl::Status JoinedTokens::CheckUnchanged() const {
  for (const auto& part : parts_) RETURN_IF_ERROR(part->CheckUnchanged());
  return absl::OkStatus();
}

// With i ends in front of it, the token at `first` is the base's token first - i, or the end behind
// base token lacking_[i] - 1.
absl::Status EndedTokens::Read(int64_t first, std::span<int32_t> into) const {
  // The first i with lacking_[i] + i >= first: ends in front of `first`.
  int64_t low = 0, high = std::ssize(lacking_);
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (lacking_[static_cast<size_t>(middle)] + middle < first) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  for (size_t i = static_cast<size_t>(low); !into.empty(); ++i) {
    const int64_t begin = first - static_cast<int64_t>(i);  // in the base
    const bool more = i < lacking_.size();
    const int64_t here = more ? lacking_[i] - begin : std::ssize(into);
    const auto count = static_cast<size_t>(std::min<int64_t>(std::ssize(into), here));
    if (count > 0) RETURN_IF_ERROR(base_->Read(begin, into.first(count)));
    into = into.subspan(count);
    first += static_cast<int64_t>(count);
    if (into.empty() || !more) break;
    into.front() = end_;
    into = into.subspan(1);
    ++first;
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
