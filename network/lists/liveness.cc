#include "network/lists/liveness.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "operations/catalogue.h"

namespace stagecoach {

ValueIdSet ToSet(const std::vector<ValueId>& ids) {
  ValueIdSet set(ids.begin(), ids.end());
  set.erase(ValueId());
  return set;
}

CallList Liveness::Of(const std::vector<Call>& calls) const {
  CallList list;
  ValueIdSet read_later = kept_;
  std::vector<ListedCall> reversed;
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    ListedCall listed{*call, std::nullopt, {}};
    const auto drop = [&](ValueId id) {
      if (owned_.contains(id) || !read_later.insert(id).second) return;
      listed.dropped.push_back(id);
    };
    for (const ValueId id : call->inputs) drop(id);
    for (const ValueId id : call->outputs) drop(id);
    listed.in_place = InPlace(listed);
    reversed.push_back(std::move(listed));
  }
  for (const ValueId id : handed_in_) {
    if (!read_later.contains(id)) list.unused.push_back(id);
  }
  list.calls.assign(std::make_move_iterator(reversed.rbegin()),
                    std::make_move_iterator(reversed.rend()));
  return list;
}

std::optional<int> Liveness::InPlace(const ListedCall& listed) const {
  const Call& call = listed.call;
  for (const int i : OperationNamed(call.operation).MayOverwrite(call.attributes)) {
    const ValueId id = call.inputs[static_cast<size_t>(i)];
    const bool once = std::count(call.inputs.begin(), call.inputs.end(), id) == 1;
    const bool last = std::count(listed.dropped.begin(), listed.dropped.end(), id) == 1;
    if (once && last && !handed_in_.contains(id)) return i;
  }
  return std::nullopt;
}

}  // namespace stagecoach
