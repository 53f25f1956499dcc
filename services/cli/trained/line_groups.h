// LinesOfGroup: how many lines of an input `translate` and `generate` write together, as one group. A
// product with other numbers of rows may round otherwise. So the cut into groups is a function of the
// number of lines and --batch alone: one machine and every number of stages write the same groups.
// Threads: pure function.
#ifndef STAGECOACH_SERVICES_CLI_TRAINED_LINE_GROUPS_H_
#define STAGECOACH_SERVICES_CLI_TRAINED_LINE_GROUPS_H_

#include <cstdint>

namespace stagecoach {

// Of groups whose size the user does not say. More than `most` lines need memory and gain little. A step
// of less than `fewest` takes hardly less time.
struct GroupSizes {
  int64_t fewest = 1, most = 1;
};
inline constexpr GroupSizes kPromptGroups = {16, 64};
inline constexpr GroupSizes kSentenceGroups = {8, 32};  // each with rows of several hypotheses

// Lines of each group but the last one, which may have fewer; at least 1. batch: what the user says;
// 0: nothing. Then few lines make smaller groups, so that several stages have one each.
int64_t LinesOfGroup(int64_t lines, int64_t batch, const GroupSizes& usual);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TRAINED_LINE_GROUPS_H_
