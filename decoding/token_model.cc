#include "decoding/token_model.h"

#include <algorithm>

#include "base/errors/check.h"

namespace stagecoach {

void RowBatch::Add(int32_t token, std::span<const int32_t> places_of_text, bool want) {
  const auto length = std::ssize(places_of_text);
  CHECK(length > 0 && length <= context) << length << " of " << context << " positions";
  tokens.push_back(token);
  positions.push_back(static_cast<int32_t>(length) - 1);
  places.push_back(places_of_text.back());
  history.insert(history.end(), places_of_text.begin(), places_of_text.end());
  history.resize(history.size() + static_cast<size_t>(context - length), 0);
  wanted.push_back(want);
}

// It is computed like any other row, and nobody reads it.
void RowBatch::AddNone() {
  tokens.push_back(0);
  positions.push_back(0);
  places.push_back(-1);
  history.resize(history.size() + static_cast<size_t>(context), 0);
  wanted.push_back(false);
}

}  // namespace stagecoach
