// For tests: follows the lists of a layer as a stage would run them.
#ifndef STAGECOACH_NETWORK_LISTS_FOLLOW_TESTING_H_
#define STAGECOACH_NETWORK_LISTS_FOLLOW_TESTING_H_

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/lists/lists.h"
#include "operations/catalogue.h"

namespace stagecoach {

inline std::vector<std::string> OperationsOf(const CallList& list) {
  std::vector<std::string> names;
  for (const ListedCall& listed : list.calls) names.push_back(listed.call.operation);
  return names;
}

// Names of the operations, with joint operations replaced by their parts.
inline std::vector<std::string> OperationsInParts(const CallList& list) {
  std::vector<std::string> names;
  for (const std::string& name : OperationsOf(list)) {
    const JointParts* const parts = OperationNamed(name).Parts();
    if (parts == nullptr) {
      names.push_back(name);
    } else {
      names.emplace_back(parts->input_gradient);
      names.emplace_back(parts->weight_gradient);
    }
  }
  return names;
}

class Follower {
 public:
  explicit Follower(const LayerLists& lists) : lists_(lists) {}

  // Checks that every input is there when it is read, and that nothing dropped is read again. At
  // the end only the wanted values, parameters and states are there.
  void Follow(const CallList& list, std::vector<ValueId> handed_in,
              const std::vector<ValueId>& wanted, const std::string& where) {
    std::set<ValueId> there(handed_in.begin(), handed_in.end());
    there.erase(ValueId());
    for (const ValueId id : list.unused) EXPECT_EQ(there.erase(id), 1u) << where;
    std::set<ValueId> owned;
    for (const auto* ids : {&lists_.parameters, &lists_.states, &lists_.accumulators}) {
      owned.insert(ids->begin(), ids->end());
    }
    for (const ListedCall& listed : list.calls) {
      for (const ValueId id : listed.call.inputs) {
        EXPECT_TRUE(owned.contains(id) || there.contains(id)) << where << " " << id.value;
      }
      if (listed.in_place.has_value()) {
        const ValueId overwritten = listed.call.inputs[static_cast<size_t>(*listed.in_place)];
        EXPECT_THAT(listed.dropped, testing::Contains(overwritten)) << where;
        EXPECT_EQ(std::count(handed_in.begin(), handed_in.end(), overwritten), 0) << where;
      }
      there.insert(listed.call.outputs.begin(), listed.call.outputs.end());
      for (const ValueId id : listed.dropped) EXPECT_EQ(there.erase(id), 1u) << where;
    }
    std::set<ValueId> expected(wanted.begin(), wanted.end());
    expected.erase(ValueId());
    EXPECT_EQ(there, expected) << where;
  }

 private:
  const LayerLists& lists_;
};

template <typename T>
std::vector<T> Both(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline void ExpectListsCanBeFollowed(const LayerLists& lists) {
  SCOPED_TRACE(FormatLists(lists));
  Follower follower(lists);
  follower.Follow(lists.forward, lists.inputs, Both(lists.outputs, lists.stash), "forward");
  follower.Follow(lists.forward_alone, lists.inputs, lists.outputs, "forward alone");
  follower.Follow(lists.evaluation, lists.inputs, lists.evaluation_outputs, "evaluation");
  const std::vector<ValueId> given = Both(lists.stash, lists.output_gradients);
  follower.Follow(lists.backward, given, lists.input_gradients, "backward");
  follower.Follow(lists.input_gradient, given, Both(lists.input_gradients, lists.weight_stash),
                  "input gradient");
  follower.Follow(lists.weight_gradient, lists.weight_stash, {}, "weight gradient");
  follower.Follow(lists.commit, {}, {}, "commit");
  // Both parts together are the joint backward.
  std::vector<std::string> split = Both(OperationsOf(lists.input_gradient),
                                        OperationsOf(lists.weight_gradient)),
                           joint = OperationsInParts(lists.backward);
  std::sort(split.begin(), split.end());
  std::sort(joint.begin(), joint.end());
  EXPECT_EQ(split, joint);
}

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LISTS_FOLLOW_TESTING_H_
