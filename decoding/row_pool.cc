#include "decoding/row_pool.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"

namespace stagecoach {

RowPool::RowPool(int32_t rows) {
  CHECK(rows >= 0) << rows;
  rows_.resize(rows);
  free_.resize(rows);
  std::iota(free_.begin(), free_.end(), 0);  // ascending numbers are a heap
}

const RowPool::Row& RowPool::Held(HypothesisId id) const {
  CHECK(id.valid() && id.value < std::ssize(rows_) && rows_[id.value].list != nullptr)
      << "no hypothesis ends with row " << id.value;
  return rows_[id.value];
}

absl::StatusOr<HypothesisId> RowPool::Extend(std::optional<HypothesisId> parent) {
  const Row before = parent ? Held(*parent) : Row{.list = std::make_shared<List>()};
  if (free_.empty()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("all ", rows_.size(), " rows of keys and values are in use"));
  }
  std::pop_heap(free_.begin(), free_.end(), std::greater<>());
  const int32_t row = free_.back();
  free_.pop_back();

  std::shared_ptr<List> list = before.list;
  if (std::ssize(*list) > before.length) {  // another child has written behind the parent's rows
    list = std::make_shared<List>();
    list->reserve(2 * static_cast<size_t>(before.length));
    list->assign(before.list->begin(), before.list->begin() + before.length);
  }
  list->push_back(row);
  if (parent) ++rows_[parent->value].users;
  rows_[row] = {.before = parent ? parent->value : -1,
                .users = 1,
                .length = before.length + 1,
                .list = std::move(list)};
  return HypothesisId(row);
}

void RowPool::Release(HypothesisId id) {
  Held(id);
  rows_[id.value].list.reset();
  for (int32_t row = id.value; row >= 0 && --rows_[row].users == 0; row = rows_[row].before) {
    free_.push_back(row);
    std::push_heap(free_.begin(), free_.end(), std::greater<>());
  }
}

std::span<const int32_t> RowPool::rows(HypothesisId id) const {
  const Row& row = Held(id);
  return std::span(*row.list).first(row.length);
}

}  // namespace stagecoach
