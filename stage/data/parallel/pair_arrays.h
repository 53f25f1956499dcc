// PairArrays: the network's inputs made of some pairs (plan/data/parallel_text.h). A sample is as
// long as the lengths that are asked for, or as the network's extents if these have no names.
// Ownership: borrows the pairs.  Threads: as PairSet.
// Units and shapes: HostBatch's; ids.
#ifndef STAGECOACH_STAGE_DATA_PARALLEL_PAIR_ARRAYS_H_
#define STAGECOACH_STAGE_DATA_PARALLEL_PAIR_ARRAYS_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "network/network.h"
#include "stage/data/batch_source.h"
#include "stage/data/parallel/pair_set.h"

namespace stagecoach {

class PairArrays {
 public:
  PairArrays(const Network& network, const Tokenizer& tokenizer);

  // Of arrays of these samples, also where the network's lengths are fixed.
  PaddingCount PaddingOf(const PairSet& pairs, std::span<const int32_t> samples,
                         const PairLengths& lengths) const;
  // The inputs of these names; CHECKs that there are such, and that the pairs fit.
  // Errors: as PairSet::ReadSource.
  absl::StatusOr<HostBatch> Make(const PairSet& pairs, std::span<const int32_t> samples,
                                 const PairLengths& lengths,
                                 std::span<const std::string> names) const;

 private:
  struct Side {
    Length name = Length::kNone;
    int32_t extent = 0;
  };
  Side SideOf(const Network& network, const char* input) const;
  // Lengths of the network's arrays for samples of these lengths.
  PairLengths Bound(const PairLengths& lengths) const;

  const int32_t begin_, end_, pad_;
  const Side source_, target_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_PARALLEL_PAIR_ARRAYS_H_
