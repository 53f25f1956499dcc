// Liveness: adds to a list of calls when each value is read for the last time, and which output
// takes the memory of which input.
// Ownership: borrows its sets.  Threads: pure.
#ifndef STAGECOACH_NETWORK_LISTS_LIVENESS_H_
#define STAGECOACH_NETWORK_LISTS_LIVENESS_H_

#include <optional>
#include <set>
#include <vector>

#include "network/lists/lists.h"

namespace stagecoach {

using ValueIdSet = std::set<ValueId>;
ValueIdSet ToSet(const std::vector<ValueId>& ids);  // without the invalid one

class Liveness {
 public:
  // `owned`: values that outlive every list. `handed_in`: values that others may hold, so no output
  // takes their memory. `kept`: values that are read after the list.
  Liveness(const ValueIdSet& owned, const ValueIdSet& handed_in, const ValueIdSet& kept)
      : owned_(owned), handed_in_(handed_in), kept_(kept) {}

  CallList Of(const std::vector<Call>& calls) const;

 private:
  std::optional<int> InPlace(const ListedCall& listed) const;

  const ValueIdSet& owned_;
  const ValueIdSet& handed_in_;
  const ValueIdSet& kept_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LISTS_LIVENESS_H_
